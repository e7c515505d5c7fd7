import { fileURLToPath } from "node:url";

/** Programs that need Node 22: where this is an older one, the one that is installed for development runs them. */
export function node22(): string {
  if (Number.parseInt(process.versions.node, 10) >= 22) return process.execPath;
  return fileURLToPath(new URL("bin/node", import.meta.resolve("node/package.json")));
}
