import { readdir, readFile } from "node:fs/promises";
import { join, relative } from "node:path";

/** Files below `dir` that hold the bytes of `text` anywhere, by their paths in it, sorted. */
export async function filesWith(dir: string, text: string): Promise<readonly string[]> {
  const found: string[] = [];
  for (const entry of await readdir(dir, { recursive: true, withFileTypes: true })) {
    const path = join(entry.parentPath, entry.name);
    if (entry.isFile() && (await readFile(path)).includes(text)) found.push(relative(dir, path));
  }
  return found.sort();
}
