import { fileURLToPath } from "node:url";

const server = fileURLToPath(new URL("../../fixture/catalog-server.js", import.meta.url));

/** An upstream that lists the tools in `file`, as an entry of the configuration; `more` is further YAML flow. */
export function catalogEntry(name: string, file: string, more = ""): string {
  return `{ name: ${name}, transport: stdio, command: "${process.execPath}", args: ["${server}", "${file}"], connection: shared${more} }`;
}
