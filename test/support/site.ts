import { createHash, randomBytes } from "node:crypto";
import { readFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import type { Role } from "../../core/action/role.ts";
import { allowEverything } from "./pack.ts";

export interface SiteOptions {
  /** The MCP endpoint of an upstream over HTTP, named `remote`. */
  readonly remoteUrl?: string;
  /** File in which the demo upstream, over stdio and named `local`, books each call. */
  readonly localLog?: string;
  /** Names and addresses at which clients of other machines reach it; left out: this machine alone does. */
  readonly hosts?: readonly string[];
  /** Of the one key; `operator` unless told. */
  readonly role?: Role;
  /** Further top-level keys of `gateway.yaml`. */
  readonly more?: string;
}

/** A key for tests, with enough entropy to be found wherever it leaks. */
export const siteKey: string = `test-${randomBytes(32).toString("base64url")}`;

const demoServer = fileURLToPath(new URL("../../core/upstream/demo/server.js", import.meta.url));

/** A `gateway.yaml` with one key, `siteKey`, the pack of `siteFiles`, and the upstreams that are asked for. */
export function siteConfig({ remoteUrl, localLog, hosts, role = "operator", more = "" }: SiteOptions): string {
  const keyHash = createHash("sha256").update(siteKey).digest("hex");
  const remote = `{ name: remote, transport: http, url: "${remoteUrl}", protocol: legacy, connection: shared }`;
  const local =
    `{ name: local, transport: stdio, command: "${process.execPath}", args: ["${demoServer}"], ` +
    `env: { DEMO_LOG: "${localLog}" }, connection: shared }`;
  const everywhere = 'host: "0.0.0.0", admin_host: "0.0.0.0", ';
  const open = hosts === undefined ? "" : `${everywhere}allowed_hosts: [${hosts.join(", ")}], `;
  return `
listen: { ${open}gateway_port: 0, admin_port: 0, metrics_port: 0 }
keys: [{ id: ci, tenant: acme, role: ${role}, key_hash: "sha256:${keyHash}" }]
upstreams: [${[...(remoteUrl === undefined ? [] : [remote]), ...(localLog === undefined ? [] : [local])].join(", ")}]
policy: { packs: [{ path: packs/open }] }
${more}
`;
}

/** A pack that allows everything but `delete_note`, which it blocks. */
export function siteFiles(): Readonly<Record<string, string>> {
  return {
    ...allowEverything("packs/open"),
    "packs/open/rules/delete.yaml": `rules:
  - id: open.delete
    title: Nothing is deleted
    decision: block
    severity: high
    risk: 80
    match: { phase: input, tool: delete_note }
    message: notes are kept
`,
  };
}

/** The calls the demo upstream booked in `file`, in order. */
export async function readCalls(file: string): Promise<readonly { tool: string; arguments: Record<string, string> }[]> {
  const text = await readFile(file, "utf8").catch((error: NodeJS.ErrnoException) => {
    if (error.code === "ENOENT") return ""; // nothing was called yet
    throw error;
  });
  return text
    .split("\n")
    .slice(0, -1)
    .map((line) => JSON.parse(line));
}
