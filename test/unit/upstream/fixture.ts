import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { fileURLToPath } from "node:url";
import { GatewayError } from "../../../core/action/error.ts";
import type { JsonRpcResponse } from "../../../core/action/json-rpc.ts";
import type { SharePercents } from "../../../core/action/place-share.ts";
import type { JsonBounds } from "../../../core/action/strict-json.ts";
import type { HttpConfig, StdioConfig, UpstreamConfig, UpstreamSettings } from "../../../core/config/gateway-config.ts";
import type { ConnectionListener, GroupScope, UpstreamEvent } from "../../../core/upstream/connection.ts";
import { UpstreamFleet } from "../../../core/upstream/fleet.ts";
import type { UpstreamGroup } from "../../../core/upstream/group.ts";
import { egress } from "../../support/egress.ts";

const closers: (() => Promise<void> | void)[] = [];

/** Ends what the tests of this file opened. */
export async function closeAll(): Promise<void> {
  for (const close of closers.splice(0).reverse()) await close();
}

export function onCleanup(close: () => Promise<void> | void): void {
  closers.push(close);
}

export const bounds: JsonBounds = { depth: 64, nodes: 100_000, stringLength: 4_000_000, reader: "tolerant" };

export const settings: UpstreamSettings = {
  name: "up",
  toolPrefix: "",
  protocol: "auto",
  connection: "session",
  timeoutMs: 2_000,
  maxTimeoutMs: 4_000,
  startTimeoutMs: 4_000,
  maxConnections: 8,
  idleMs: 60_000,
  capabilities: {},
  facts: {},
  trustAnnotations: false,
  definitions: { pin: true, newTools: "pin" },
  untrusted: [],
};

/** The misbehaving server; `start` says how it starts. */
export function hostile(
  start = "",
  overrides: Partial<UpstreamSettings> = {},
  env: Record<string, string> = {},
): StdioConfig {
  const script = fileURLToPath(new URL("../../fixture/hostile-server.js", import.meta.url));
  return {
    ...settings,
    ...overrides,
    transport: "stdio",
    command: process.execPath,
    args: [script],
    env: { START: start, ...env },
  };
}

export function http(url: string, overrides: Partial<UpstreamSettings> = {}): HttpConfig {
  return { ...settings, ...overrides, transport: "http", url, headers: {} };
}

export interface Fixture {
  readonly fleet: UpstreamFleet;
  readonly events: UpstreamEvent[];
}

/** All of an upstream's connections for everybody. */
const noShares: SharePercents = { keySharePercent: 100, tenantSharePercent: 100 };

export function openFleet(configs: readonly UpstreamConfig[], replyBytes = 1_000_000, shares = noShares): Fixture {
  const events: UpstreamEvent[] = [];
  const fleet = new UpstreamFleet({
    configs,
    replyBounds: bounds,
    replyBytes,
    shares,
    egress,
    clock: Date.now,
    gatewayInfo: { name: "gateway", version: "1.0.0" },
    onEvent: (event) => events.push(event),
  });
  onCleanup(() => fleet.close());
  return { fleet, events };
}

type ClientScope = Omit<GroupScope, "clientInfo">;

export function scope(overrides: Partial<ClientScope> = {}): ClientScope {
  return {
    holder: { id: "key", tenant: "acme" },
    era: "legacy",
    capabilities: {},
    listener: listener(),
    ...overrides,
  };
}

export function listener(overrides: Partial<ConnectionListener> = {}): ConnectionListener {
  return {
    onNotification: () => undefined,
    onRequest: async () => {
      throw new GatewayError("METHOD_UNKNOWN");
    },
    onClose: () => undefined,
    ...overrides,
  };
}

/** A group over one upstream. */
export function openGroup(
  config: UpstreamConfig,
  overrides: Partial<GroupScope> = {},
): Fixture & { group: UpstreamGroup } {
  const fixture = openFleet([config]);
  return { ...fixture, group: fixture.fleet.group(scope(overrides)) };
}

/** Calls a tool of `up`. */
export async function call(group: UpstreamGroup, name: string, args: object = {}): Promise<JsonRpcResponse> {
  const connection = await group.connection("up");
  return connection.request({ method: "tools/call", params: { name, arguments: { ...args } } });
}

/** The text of a tool's answer. */
export function textOf(response: JsonRpcResponse): string {
  if (!("result" in response)) throw new Error(`expected a result, got ${JSON.stringify(response)}`);
  const content = response.result.content as readonly { readonly text: string }[];
  return (content[0] as { readonly text: string }).text;
}

/** The error a promise rejects with, as `CODE: message`. */
export async function fault(promise: Promise<unknown>): Promise<string> {
  try {
    await promise;
  } catch (error) {
    return error instanceof GatewayError ? `${error.code} ${error.message}` : String(error);
  }
  throw new Error("expected a rejection");
}

export async function until(condition: () => boolean, ms = 3_000): Promise<void> {
  const end = Date.now() + ms;
  while (!condition()) {
    if (Date.now() > end) throw new Error("waited too long");
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
}

/** Whether a process is still there. */
export function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}

export interface HttpFixture {
  readonly url: string;
  readonly requests: { readonly method: string; readonly headers: IncomingMessage["headers"]; readonly body: string }[];
  readonly server: Server;
}

export type Answer = (
  request: {
    readonly method: string;
    readonly headers: IncomingMessage["headers"];
    readonly message: Message;
    readonly path: string;
  },
  response: ServerResponse,
) => void;

export interface Message {
  readonly id?: number;
  readonly method?: string;
  readonly params?: Record<string, unknown>;
}

/** An HTTP server on a port of its own that answers as told and keeps what it was sent. */
export async function startHttp(answer: Answer): Promise<HttpFixture> {
  const requests: HttpFixture["requests"] = [];
  const server = createServer(async (request, response) => {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    const body = Buffer.concat(chunks).toString("utf8");
    const { method = "", headers } = request;
    requests.push({ method, headers, body });
    answer({ method, headers, message: body === "" ? {} : JSON.parse(body), path: request.url ?? "" }, response);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  onCleanup(() => {
    server.closeAllConnections();
    server.close();
  });
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/mcp`, requests, server };
}

export function json(response: ServerResponse, value: unknown, headers: Record<string, string> = {}): void {
  response.writeHead(200, { "content-type": "application/json", ...headers });
  response.end(typeof value === "string" ? value : JSON.stringify(value));
}

/** Answers the legacy handshake with a session; anything else goes to `answer`. */
export function legacyHttp(answer: Answer, session: () => string | undefined = () => "s-1"): Answer {
  return (request, response) => {
    const { message, method } = request;
    if (method === "GET") response.writeHead(405).end();
    else if (method === "DELETE") response.writeHead(200).end();
    else if (message.method === "server/discover")
      json(response, { jsonrpc: "2.0", id: message.id, error: { code: -32601, message: "no" } });
    else if (message.method === "initialize") {
      const result = { protocolVersion: "2025-11-25", capabilities: { tools: {} }, serverInfo: { name: "raw" } };
      const id = session();
      json(response, { jsonrpc: "2.0", id: message.id, result }, id === undefined ? {} : { "mcp-session-id": id });
    } else if (message.id === undefined) response.writeHead(202).end();
    else answer(request, response);
  };
}
