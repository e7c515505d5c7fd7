import { access, constants, mkdir, open, stat, statfs } from "node:fs/promises";
import { dirname } from "node:path";

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
