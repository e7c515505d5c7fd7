import { open } from "node:fs/promises";

/** Writes a new file, durable when it resolves. */
export async function writeSynced(path: string, bytes: Buffer, mode = 0o644): Promise<void> {
  const file = await open(path, "wx", mode);
  try {
    await file.writeFile(bytes);
    await file.sync();
  } finally {
    await file.close();
  }
}
