import { createHash } from "node:crypto";
import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";

/** Every file below a folder with the SHA-256 of its bytes in hex, and every folder. */
export async function fileDigests(root: string): Promise<Readonly<Record<string, string>>> {
  const entries = await readdir(root, { recursive: true, withFileTypes: true });
  const files = await Promise.all(
    entries.map(async (entry) => {
      const path = join(entry.parentPath, entry.name);
      const content = entry.isFile()
        ? createHash("sha256")
            .update(await readFile(path))
            .digest("hex")
        : "folder";
      return [path.slice(root.length + 1), content] as const;
    }),
  );
  return Object.fromEntries(files.toSorted(([a], [b]) => (a < b ? -1 : 1)));
}
