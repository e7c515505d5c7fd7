import { createHash, randomBytes } from "node:crypto";
import { existsSync, readFileSync } from "node:fs";
import { mkdir, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { repositoryRoot } from "../../check/source-tree.ts";
import { EvidenceReader } from "../../support/evidence-reader.ts";
import { type RunningGateway, startGateway } from "../../support/gateway.ts";
import {
  type ClientKind,
  type ClientSide,
  connectClient,
  type Endpoint,
  type McpClient,
} from "../../support/mcp-client.ts";
import { allowEverything } from "../../support/pack.ts";

/** A program whose stdio is an MCP server. */
export interface ServerProgram {
  readonly command: string;
  readonly args: readonly string[];
  readonly env: Readonly<Record<string, string>>;
}

export interface WorldOptions {
  /** By name. Each is started behind a tee that keeps a log of what reaches it. */
  readonly servers?: (folder: string) => Readonly<Record<string, ServerProgram>>;
  /** Further keys of the upstream of that name, as YAML flow: `tool_prefix: x_, connection: shared`. */
  readonly keys?: Readonly<Record<string, string>>;
  /** Further entries of `upstreams`, each a YAML flow mapping. */
  readonly upstreams?: readonly string[];
  /** Text of the rule file of the one policy pack, namespace `test`, or the pack we ship; all is allowed unless told. */
  readonly rules?: string | "baseline";
  /** Further keys of `policy`, as YAML flow. */
  readonly policy?: string;
  /** Further top-level keys of `gateway.yaml`. */
  readonly more?: string;
  /** Environment of the gateway, beside that of the tests. */
  readonly env?: Readonly<Record<string, string>>;
}

/** A message as it reached a server. */
export interface Logged {
  readonly id?: number | string;
  readonly method?: string;
  readonly params?: Readonly<Record<string, unknown>>;
}

/** A gateway in production configuration, real MCP servers behind it, and a key to it. */
export interface World {
  readonly gateway: RunningGateway;
  readonly evidence: EvidenceReader;
  /** The gateway as clients see it. */
  readonly endpoint: Endpoint;
  /** For files of the servers. */
  readonly folder: string;
  readonly key: string;
  /** Of an operator of the same tenant, who may review what `key` asks for. */
  readonly reviewerKey: string;
  /** Returns the key of an agent of the same tenant that nobody used yet. */
  newAgentKey(): string;
  /** `label`: of its session; those of one key without a label share one. */
  connect(kind: ClientKind, side?: ClientSide, label?: string, key?: string): Promise<McpClient>;
  /** Every message that reached the server so far, of all its processes. */
  received(server: string): readonly Logged[];
  /** Those of them that call a tool. */
  calls(server: string): readonly Logged[];
  stop(): Promise<void>;
}

const baseline = join(repositoryRoot, "policy-packs/baseline");
const tee = fileURLToPath(new URL("../../fixture/stdio-tee.js", import.meta.url));

/** Starts everything; leaves nothing behind when something does not start. */
export async function openWorld(options: WorldOptions): Promise<World> {
  const folder = await mkdtemp(join(tmpdir(), "client-world-"));
  await mkdir(join(folder, "log"));
  const [key, reviewerKey] = [newKey(), newKey()];
  const agentKeys = Array.from({ length: maxAgents }, newKey);
  const unused = [...agentKeys];
  const config = configFor(folder, [key, reviewerKey, agentKeys], options);
  const files = packFiles(options.rules);
  const gateway = await startGateway({ config, files, env: options.env ?? {} }).catch(async (error: unknown) => {
    await rm(folder, { recursive: true, force: true });
    throw error;
  });
  const endpoint = { url: `${gateway.url}/mcp`, headers: { "x-api-key": key } };
  const received = (server: string): readonly Logged[] => readLog(join(folder, "log", server));
  const clients: McpClient[] = [];
  return {
    gateway,
    evidence: new EvidenceReader(gateway.adminUrl, key),
    endpoint,
    folder,
    key,
    reviewerKey,
    newAgentKey: () => {
      const found = unused.pop();
      if (found === undefined) throw new Error(`expected at most ${maxAgents} agents`);
      return found;
    },
    connect: async (kind, side, label, other = key) => {
      const session = label === undefined ? {} : { "x-gateway-session-id": label };
      const client = await connectClient(kind, { ...endpoint, headers: { "x-api-key": other, ...session } }, side);
      clients.push(client);
      return client;
    },
    received,
    calls: (server) => received(server).filter(({ method }) => method === "tools/call"),
    stop: async () => {
      await Promise.all(clients.map((client) => client.close()));
      await gateway.stop();
      await rm(folder, { recursive: true, force: true });
    },
  };
}

const maxAgents = 80;

function newKey(): string {
  return `test-${randomBytes(32).toString("base64url")}`;
}

function keyEntry(id: string, role: string, key: string): string {
  const hash = createHash("sha256").update(key).digest("hex");
  return `  - { id: ${id}, tenant: acme, role: ${role}, key_hash: "sha256:${hash}" }`;
}

function configFor(
  folder: string,
  [key, reviewerKey, agentKeys]: readonly [string, string, readonly string[]],
  options: WorldOptions,
): string {
  const servers = Object.entries(options.servers?.(folder) ?? {}).map(([name, program]) => {
    const args = JSON.stringify([tee, join(folder, "log", name), program.command, ...program.args]);
    const more = options.keys?.[name] === undefined ? "" : `, ${options.keys[name]}`;
    const env = JSON.stringify(program.env);
    return `{ name: ${name}, transport: stdio, command: "${process.execPath}", args: ${args}, env: ${env}${more} }`;
  });
  return `
listen: { gateway_port: 0, admin_port: 0, metrics_port: 0 }
keys:
${keyEntry("ci", "admin", key)}
${keyEntry("reviewer", "operator", reviewerKey)}
${agentKeys.map((agentKey, index) => keyEntry(`agent-${index}`, "operator", agentKey)).join("\n")}
upstreams:
${listOf([...servers, ...(options.upstreams ?? [])])}
policy: { packs: [{ path: ${options.rules === "baseline" ? baseline : "packs/test"} }]${options.policy === undefined ? "" : `, ${options.policy}`} }
${options.more ?? ""}
`;
}

function listOf(entries: readonly string[]): string {
  return entries.length === 0 ? "  []" : entries.map((one) => `  - ${one}`).join("\n");
}

function packFiles(rules: string | undefined): Readonly<Record<string, string>> {
  if (rules === "baseline") return {};
  if (rules === undefined) return allowEverything("packs/test");
  return { "packs/test/pack.yaml": manifest, "packs/test/rules/rules.yaml": rules };
}

const manifest = `apiVersion: gateway/v1
kind: PolicyPack
metadata: { name: test, version: 1.0.0, title: Rules of a test, authors: [test], license: Apache-2.0 }
namespace: test
`;

function readLog(file: string): readonly Logged[] {
  if (!existsSync(file)) return []; // nothing has reached it yet
  return readFileSync(file, "utf8")
    .split("\n")
    .slice(0, -1)
    .map((line) => JSON.parse(line) as Logged);
}
