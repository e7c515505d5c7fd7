import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { repositoryRoot } from "../check/source-tree.ts";

const server = fileURLToPath(new URL("../fixture/catalog-server.js", import.meta.url));

/** An upstream that lists the tools in `file`, as an entry of the configuration; `more` is further YAML flow. */
export function catalogEntry(name: string, file: string, more = "", log = ""): string {
  const args = [server, file, ...(log === "" ? [] : [log])];
  return `{ name: ${name}, transport: stdio, command: "${process.execPath}", args: ${JSON.stringify(args)}, connection: shared${more} }`;
}

/** An upstream with two tools whose definitions are withheld, as an entry of the configuration. */
export function poisonedEntry(): string {
  return catalogEntry("poisoned", join(repositoryRoot, "test", "fixture", "definition", "poisoned.json"));
}
