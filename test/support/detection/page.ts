import { readFileSync } from "node:fs";
import { readdir } from "node:fs/promises";
import { join } from "node:path";
import { repositoryRoot } from "../../check/source-tree.ts";

/** Pages that others wrote for people: the documentation in our dependencies. */
export async function readPages(): Promise<readonly string[]> {
  const folder = join(repositoryRoot, "node_modules");
  const paths = await readdir(folder, { recursive: true });
  const pages = paths.filter((path) => /\.md$/i.test(path) && !path.startsWith("agent-governance-sdk"));
  return pages.map((path) => readFileSync(join(folder, path), "utf8")).filter((text) => text.isWellFormed());
}
