import { access, constants, copyFile, mkdir, open, readdir, stat, statfs } from "node:fs/promises";
import { dirname, join } from "node:path";

/** In the folder of a store: the folder of the records' database, and the file of the journal. */
export const recordsFolder = "records";
export const journalFile = "journal";

/**
 * Makes a folder, and those it lies in, with mode 0700; one that is there stays as it is.
 * Rejects with the system's own error: Node's recursive `mkdir` says ENOENT of a read-only disk.
 */
export async function makeFolder(path: string): Promise<void> {
  try {
    await mkdir(path, { mode: 0o700 });
  } catch (error) {
    const code = (error as NodeJS.ErrnoException).code;
    if (code === "ENOENT" && dirname(path) !== path) {
      await makeFolder(dirname(path));
      await mkdir(path, { mode: 0o700 });
    } else if (code !== "EEXIST" || !(await stat(path)).isDirectory()) throw error;
  }
}

/** Tells whether this process may write to a file or folder; false where there is none. */
export async function isWritable(path: string): Promise<boolean> {
  return access(path, constants.W_OK).then(
    () => true,
    () => false,
  );
}

/** Bytes of all files below `folder`; those that go meanwhile are left out. */
export async function folderBytes(folder: string): Promise<number> {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true });
  const files = entries.filter((entry) => entry.isFile());
  const sizes = await Promise.all(files.map(({ parentPath, name }) => fileBytes(join(parentPath, name))));
  return sizes.reduce((sum, size) => sum + size, 0);
}

async function fileBytes(path: string): Promise<number> {
  try {
    return (await stat(path)).size;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return 0;
    throw error;
  }
}

interface DiskSpace {
  /** Bytes available to this process. */
  readonly free: number;
  /** Size in bytes. */
  readonly capacity: number;
}

/** Returns the space of the disk that holds a folder; undefined where it is unknown. */
export async function diskSpace(folder: string): Promise<DiskSpace | undefined> {
  try {
    const { bsize, bavail, blocks } = await statfs(folder);
    return { free: bavail * bsize, capacity: blocks * bsize };
  } catch {
    return undefined;
  }
}

/** Makes the entries of a folder durable. */
export async function syncFolder(path: string): Promise<void> {
  const folder = await open(path, "r");
  try {
    await folder.sync();
  } finally {
    await folder.close();
  }
}

/**
 * Copies the files of a store that nobody writes to, into a folder that does not exist. The databases never change a file of theirs that
 * has two names; the journal is written in place, so it is always copied.
 */
export async function copyStoreFiles(
  from: string,
  to: string,
  copy: (from: string, to: string) => Promise<void>,
): Promise<void> {
  await mkdir(to, { mode: 0o700 });
  for (const entry of await readdir(from, { withFileTypes: true })) {
    const [source, target] = [join(from, entry.name), join(to, entry.name)];
    if (entry.isDirectory()) await copyStoreFiles(source, target, copy);
    else await (entry.name === journalFile ? copyFile(source, target) : copy(source, target));
  }
}
