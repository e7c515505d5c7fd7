import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { repositoryRoot } from "../check/source-tree.ts";
import { referenceFiles } from "./reference.ts";

for (const [path, text] of await referenceFiles()) {
  await writeFile(join(repositoryRoot, path), text);
}
