import { mkdir, readdir, readFile, rm, utimes, writeFile } from "node:fs/promises";
import { join } from "node:path";

/** A 1 × 1 PNG. */
const png = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";

const files: Readonly<Record<string, string | Buffer>> = {
  "a.txt": "one\ntwo\nthree\nfour\n",
  "b.md": "# Title\n\nÄpfel, 日本語, 🍏\n",
  "deep/er/c.json": '{"n":1}\n',
  "deep/empty.txt": "",
  "picture.png": Buffer.from(png, "base64"),
  "blob.bin": Buffer.from([0, 1, 2, 255]),
};
const longAgo = new Date("2020-01-02T03:04:05Z");

/** Makes the folder hold exactly the same files as the last time. */
export async function resetFiles(folder: string): Promise<void> {
  await mkdir(folder, { recursive: true });
  for (const name of await readdir(folder)) await rm(join(folder, name), { recursive: true });
  await mkdir(join(folder, "deep/er"), { recursive: true });
  for (const [name, content] of Object.entries(files)) {
    await writeFile(join(folder, name), content);
    await utimes(join(folder, name), longAgo, longAgo);
  }
}

/** Every file below the folder with its content, and every folder with null. */
export async function snapshot(folder: string): Promise<Readonly<Record<string, string | null>>> {
  const found: Record<string, string | null> = {};
  for (const entry of await readdir(folder, { recursive: true, withFileTypes: true })) {
    const path = join(entry.parentPath, entry.name);
    found[path] = entry.isDirectory() ? null : await readFile(path, "base64");
  }
  return found;
}
