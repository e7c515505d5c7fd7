import { createHash, randomBytes } from "node:crypto";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import type { JsonObject } from "../../core/action/json.ts";
import { ModelProvider } from "../fixture/model-provider.ts";
import { Collector } from "./collector.ts";
import { type RunningGateway, startGateway } from "./gateway.ts";
import { type ClientKind, connectClient, type McpClient } from "./mcp-client.ts";
import { allowEverything } from "./pack.ts";
import { type Recorder, startRecorder } from "./recorder.ts";
import { scrape } from "./scrape.ts";

export interface TracedOptions {
  /** Further members of `telemetry`. */
  readonly telemetry?: string;
  /** Time between reports of metrics; 0, none, unless told. */
  readonly metricsIntervalMs?: number;
  /** Added to the gateway's environment. */
  readonly env?: Readonly<Record<string, string>>;
  /** Further top-level keys. */
  readonly more?: string;
}

type Person = "agent" | "rita";

const demoServer = fileURLToPath(new URL("../../core/upstream/demo/server.js", import.meta.url));
const tee = fileURLToPath(new URL("../fixture/stdio-tee.js", import.meta.url));

/** Of `echo`, what says `hold` waits for a review, what says `refuse` is blocked, and what says `hide` is not answered. */
const rules = `rules:
  - { id: open.hold, title: Held, decision: review, severity: low, risk: 10, match: { phase: input, tool: echo }, when: has(args.hold), message: asked for review }
  - { id: open.refuse, title: Blocked, decision: block, severity: low, risk: 10, match: { phase: input, tool: echo }, when: has(args.refuse), message: asked for a block }
  - { id: open.hide, title: Withheld, decision: block, severity: low, risk: 10, match: { phase: output, tool: echo }, when: has(args.hide), message: asked to hide }
`;

/** A gateway that tells a collector, between clients and an MCP server over HTTP, one over stdio, and model providers. */
export class TracedWorld {
  readonly collector: Collector;
  readonly recorder: Recorder;
  readonly provider: ModelProvider;
  readonly keys: Readonly<Record<Person, string>> = { agent: newKey(), rita: newKey() };
  /** A header's secret value, which goes to the collector. */
  readonly collectorSecret: string = `Bearer ${newKey()}`;
  readonly #folder: string;
  readonly #clients: McpClient[] = [];
  #gateway: RunningGateway | undefined;

  private constructor(folder: string, collector: Collector, recorder: Recorder, provider: ModelProvider) {
    this.#folder = folder;
    this.collector = collector;
    this.recorder = recorder;
    this.provider = provider;
  }

  static async open(options: TracedOptions = {}): Promise<TracedWorld> {
    const parts = [Collector.start(), startRecorder(), ModelProvider.start()] as const;
    const folder = await mkdtemp(join(tmpdir(), "traced-"));
    const world = new TracedWorld(folder, ...(await Promise.all(parts)));
    try {
      await world.#start(options);
      return world;
    } catch (error) {
      await world.stop();
      throw error;
    }
  }

  get gateway(): RunningGateway {
    if (this.#gateway === undefined) throw new TypeError("TracedWorld: the gateway does not run");
    return this.#gateway;
  }

  /** What reached the upstream over stdio that calls a tool. */
  async stdioCalls(): Promise<readonly JsonObject[]> {
    const lines = (await readFile(this.#stdioLog, "utf8")).split("\n").filter((line) => line !== "");
    return lines.map((line) => JSON.parse(line) as JsonObject).filter(({ method }) => method === "tools/call");
  }

  /** What the gateway counts of spans. */
  async counted(result: "sent" | "failed" | "dropped"): Promise<number> {
    const series = `gateway_telemetry_total{signal="spans",result="${result}"}`;
    return (await scrape(this.gateway.metricsUrl)).get(series) ?? 0;
  }

  get #stdioLog(): string {
    return join(this.#folder, "stdio.jsonl");
  }

  /** An official client of the agent. */
  async connect(kind: ClientKind): Promise<McpClient> {
    const headers = { "x-api-key": this.keys.agent };
    const client = await connectClient(kind, { url: `${this.gateway.url}/mcp`, headers });
    this.#clients.push(client);
    return client;
  }

  /** Approves the one approval that waits. */
  async approve(): Promise<void> {
    const headers = { "x-api-key": this.keys.rita, "content-type": "application/json" };
    const list = `${this.gateway.adminUrl}/admin/v1/approvals`;
    const { items } = (await (await fetch(`${list}?state=pending`, { headers })).json()) as {
      readonly items: readonly { readonly id: string }[];
    };
    const answer = await fetch(`${list}/${items[0]?.id}/approve`, { method: "POST", headers, body: "{}" });
    if (answer.status !== 200) throw new Error(`expected an approval, got ${answer.status}: ${await answer.text()}`);
  }

  /** Stops the gateway, which tells what waits, and returns its exit code. */
  async stopGateway(): Promise<number> {
    await Promise.all(this.#clients.splice(0).map((client) => client.close().catch(() => undefined)));
    return this.gateway.stop();
  }

  async stop(): Promise<void> {
    if (this.#gateway !== undefined && this.#gateway.process.exitCode === null) await this.stopGateway();
    this.collector.stop();
    this.provider.stop();
    await this.recorder.stop();
    await rm(this.#folder, { recursive: true, force: true });
  }

  async #start({ telemetry = "", metricsIntervalMs = 0, more = "", env: further = {} }: TracedOptions): Promise<void> {
    const key = (person: Person): string =>
      `{ id: ${person}, tenant: acme, role: operator, key_hash: "sha256:${sha256(this.keys[person])}" }`;
    const headers = "headers_env: { authorization: COLLECTOR_SECRET }";
    const told = `telemetry: { endpoint: "${this.collector.url}", metrics_interval_ms: ${metricsIntervalMs}, ${headers}, ${telemetry} }`;
    const config = `
listen: { gateway_port: 0, admin_port: 0, metrics_port: 0 }
keys: [${key("agent")}, ${key("rita")}]
upstreams:
  - { name: recorder, transport: http, url: "${this.recorder.url}", protocol: legacy, connection: shared }
  - { name: notes, transport: stdio, command: "${process.execPath}", args: ["${tee}", "${this.#stdioLog}", "${process.execPath}", "${demoServer}"], connection: shared }
providers:
  - { name: open, type: openai, base_url: "${this.provider.baseUrl("openai")}", models: [chat-model, shared-model], max_retries: 0 }
  - { name: claude, type: anthropic, base_url: "${this.provider.baseUrl("anthropic")}", models: [messages-model, shared-model] }
model_gateway:
  routes:
    - { model: chat-model, providers: [{ name: open, model: open-1 }] }
    - { model: messages-model, providers: [{ name: claude, model: claude-1 }] }
    - { model: shared-model, fallback: true, providers: [{ name: open, model: open-2 }, { name: claude, model: claude-2 }] }
sessions: { review_flood: { reviews: 0 }, risk: { kill_at: 0 } }
policy: { packs: [{ path: packs/open }] }
${told}
${more}
`;
    const files = { ...allowEverything("packs/open"), "packs/open/rules/traced.yaml": rules };
    const env = { ...further, COLLECTOR_SECRET: this.collectorSecret };
    this.#gateway = await startGateway({ config, files, env, folder: this.#folder });
  }
}

/** A `traceparent` that nobody had before. */
export function newTraceparent(flags: string = "01"): {
  readonly traceId: string;
  readonly text: string;
  readonly spanId: string;
} {
  const [traceId, spanId] = [randomBytes(16).toString("hex"), randomBytes(8).toString("hex")];
  return { traceId, spanId, text: `00-${traceId}-${spanId}-${flags}` };
}

function sha256(text: string): string {
  return createHash("sha256").update(text).digest("hex");
}

function newKey(): string {
  return `test-${randomBytes(32).toString("base64url")}`;
}
