import { statfs } from "node:fs/promises";

export interface DiskSpace {
  /** Bytes that this process may still take. */
  readonly free: number;
  /** Bytes in all. */
  readonly capacity: number;
}

/** The disk that a folder lies on; undefined where it cannot be asked. */
export async function diskSpace(folder: string): Promise<DiskSpace | undefined> {
  try {
    const { bsize, bavail, blocks } = await statfs(folder);
    return { free: bavail * bsize, capacity: blocks * bsize };
  } catch {
    return undefined;
  }
}
