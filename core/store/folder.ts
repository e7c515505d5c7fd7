import { mkdir, stat } from "node:fs/promises";
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
