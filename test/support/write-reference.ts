import { writeFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import { referenceFiles } from "./reference.ts";

for (const [path, text] of await referenceFiles()) {
  await writeFile(fileURLToPath(new URL(`../../../${path}`, import.meta.url)), text);
}
