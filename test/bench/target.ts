import { createHash } from "node:crypto";
import { join } from "node:path";
import type { Role } from "../../core/action/role.ts";
import { repositoryRoot } from "../check/source-tree.ts";
import { folderOf } from "../support/first-party.ts";
import { type GatewayOptions, type RunningGateway, startGateway } from "../support/gateway.ts";
import type { Server } from "./servers.ts";

/** A process under load: the bare pass-through, or a gateway. */
export interface Target {
  readonly name: string;
  /** Without a path. */
  readonly origin: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly pid: number;
  readonly gateway: RunningGateway | null;
}

const key = "bench-key-not-a-secret";
export const benchHeaders: Readonly<Record<string, string>> = { "x-api-key": key };

const pack = (name: string): string => `{ path: "${join(repositoryRoot, "policy-packs", name)}" }`;

/** `policy` of a configuration: the baseline pack, and beside it such further packs. */
export function baselinePolicy(...more: readonly string[]): string {
  return `policy: { packs: [${[pack("baseline"), ...more].join(", ")}] }\n`;
}

/** The same with the session-watch pack and one plugin, which reads what is sent. */
export const watchedPolicy: string = `policy:
  packs: [${pack("baseline")}, ${pack("session-watch")}]
  plugins: [{ path: "${folderOf("secret-egress")}", phases: [input] }]
`;

/** `upstreams` of a configuration: the server of `echo-server.ts`. */
export function echoUpstream(origin: string): string {
  const capabilities = "{ lookup: read, change: write, wipe: delete }";
  return `upstreams: [{ name: bench, transport: http, url: "${origin}/mcp", capabilities: ${capabilities} }]\n`;
}

/** One entry of `keys`. */
export function keyEntry(id: string, tenant: string, role: Role, secret: string): string {
  const hash = createHash("sha256").update(secret).digest("hex");
  return `{ id: ${id}, tenant: ${tenant}, role: ${role}, key_hash: "sha256:${hash}" }`;
}

/** The flag of Node with which the image and the systemd unit run a gateway. */
export const nodeFlag = "--max-semi-space-size=32";

/** A gateway in a process of its own, with durable signed evidence, one key, whose rates bound nothing here, and `config`. */
export function startGoverned(
  config: string,
  more: Pick<GatewayOptions, "files" | "folder" | "env"> = {},
): Promise<RunningGateway> {
  const common = `
listen: { gateway_port: 0, admin_port: 0, metrics_port: 0 }
keys: [${keyEntry("bench", "bench", "operator", key)}]
usage: { requests_per_minute: 1000000000, tokens_per_minute: 1000000000 }
log: { level: warn }
`;
  const env = { ...more.env, NODE_OPTIONS: `${nodeFlag} ${more.env?.NODE_OPTIONS ?? ""}` };
  return startGateway({ ...more, env, ownProcess: true, config: common + config });
}

export function bareTarget({ origin, pid }: Server): Target {
  return { name: "bare pass-through", origin, headers: benchHeaders, pid, gateway: null };
}

export function governedTarget(name: string, gateway: RunningGateway): Target {
  return { name, origin: gateway.url, headers: benchHeaders, pid: pidOf(gateway), gateway };
}

export function pidOf({ process: { pid } }: RunningGateway): number {
  if (pid === undefined) throw new TypeError("expected a process that was started");
  return pid;
}

/** The state of a gateway: store, evidence and keys. */
export function dataFolder({ folder }: RunningGateway): string {
  return join(folder, "data");
}

/** The body of the n-th call of the tool that reads. */
export function lookupCall(n: number): string {
  const params = { name: "lookup", arguments: { id: `customer-${n}`, fields: ["name", "city"], limit: 10 } };
  return JSON.stringify({ jsonrpc: "2.0", id: n, method: "tools/call", params });
}
