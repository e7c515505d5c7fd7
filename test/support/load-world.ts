import { createHash, randomBytes } from "node:crypto";
import { createReadStream } from "node:fs";
import { cp, mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { text } from "node:stream/consumers";
import { principalId } from "../../core/action/principal.ts";
import type { Role } from "../../core/action/role.ts";
import { recordKey, recordRange } from "../../core/evidence/record/key-space.ts";
import type { EvidenceRecord } from "../../core/evidence/record/record.ts";
import { openStore } from "../../core/store/open.ts";
import { repositoryRoot } from "../check/source-tree.ts";
import { ModelProvider, scripts } from "../fixture/model-provider.ts";
import { answerEvents } from "../fixture/model-reply.ts";
import type { GatewayGroup, GroupedGateway } from "./gateway-group.ts";
import { type Recorded, type Recorder, startRecorder } from "./recorder.ts";

/** Agents, each with a habit of its own; `rita` answers them, `adam` looks after the gateway. */
const roleOf = {
  reader: "viewer",
  prowler: "viewer",
  writer: "viewer",
  holder: "viewer",
  talker: "viewer",
  suspect: "viewer",
  accused: "viewer",
  rita: "operator",
  adam: "admin",
} as const satisfies Readonly<Record<string, Role>>;
export type LoadPerson = keyof typeof roleOf;

export const loadTenant = "acme";

/** The environment of every gateway that serves one. */
export const loadEnv = { PROVIDER_KEY: newKey() } as const;

/** Everything at the desk needs a ticket; of the rest the shipped packs judge. */
const deskPack: Readonly<Record<string, string>> = {
  "packs/desk/pack.yaml": `apiVersion: gateway/v1
kind: PolicyPack
metadata:
  name: desk
  version: 1.0.0
  title: The desk
  description: The desk asks for a ticket.
  authors: [test]
  license: Apache-2.0
namespace: desk
rules: ["rules/*.yaml"]
`,
  "packs/desk/rules/ticket.yaml": `rules:
  - id: desk.ticket
    title: The desk asks for a ticket
    decision: block
    match: { phase: input, target: desk }
    require_ticket: true
    message: the desk asks for a ticket
`,
};

/**
 * A data folder that outlives its gateways, each of which is killed, between an upstream and a provider that outlive them too and
 * keep logs of their own. Production settings, but that neither reviews nor risk stop anybody: the load is nothing but those.
 */
export class LoadWorld {
  readonly folder: string;
  readonly #upstream: Recorder;
  readonly #provider: ModelProvider;
  readonly #keys: Readonly<Record<LoadPerson, string>>;
  #gateway: GroupedGateway | null = null;
  /** Bytes of the upstream's log that were read. */
  #read = 0;
  /** True from the moment of a kill to the next start. */
  isKilled = true;
  /** RFC 3339: the moment of the last kill under load; null before the first. */
  killedAt: string | null = null;
  /** Starts that came to serve. */
  startCount = 0;
  longestStartMs = 0;

  private constructor(folder: string, upstream: Recorder, provider: ModelProvider) {
    this.folder = folder;
    this.#upstream = upstream;
    this.#provider = provider;
    this.#keys = Object.fromEntries(Object.keys(roleOf).map((person) => [person, newKey()])) as Record<
      LoadPerson,
      string
    >;
  }

  static async create(): Promise<LoadWorld> {
    const folder = await mkdtemp(join(tmpdir(), "mixed-load-"));
    const provider = await ModelProvider.start();
    provider.script = scripts.streams(answerEvents("chat", { text: "One word after the other." }), 1);
    const world = new LoadWorld(folder, await startRecorder(), provider);
    for (const [path, content] of Object.entries({ ...deskPack, "gateway.yaml": world.#config() })) {
      await mkdir(dirname(join(folder, path)), { recursive: true });
      await writeFile(join(folder, path), content);
    }
    return world;
  }

  get configPath(): string {
    return join(this.folder, "gateway.yaml");
  }

  get gateway(): GroupedGateway {
    if (this.#gateway === null) throw new Error("the world has no gateway running");
    return this.#gateway;
  }

  key(person: LoadPerson): string {
    return this.#keys[person];
  }

  principal(person: LoadPerson): string {
    return principalId(loadTenant, hashOf(this.#keys[person]));
  }

  /** Starts a gateway on what the last one left. Throws where it does not come to serve. */
  async start(group: GatewayGroup): Promise<void> {
    const begun = performance.now();
    this.#gateway = await group.start(this.configPath);
    this.isKilled = false;
    this.startCount++;
    this.longestStartMs = Math.max(this.longestStartMs, performance.now() - begun);
  }

  /** Called in the turn in which its gateway is killed under load. */
  noteKill(): void {
    this.isKilled = true;
    this.killedAt = new Date().toISOString();
  }

  /** Ends everything but the gateway, and removes the folder. */
  async stop(): Promise<void> {
    this.#provider.stop();
    await this.#upstream.stop();
    await rm(this.folder, { recursive: true, force: true });
  }

  /** Copies the data folder as a kill left it; the copy is removed with the world. */
  async copy(name: string): Promise<string> {
    const copy = join(this.folder, name);
    await rm(copy, { recursive: true, force: true });
    await cp(join(this.folder, "data"), copy, { recursive: true });
    return copy;
  }

  /** Returns the marks of the calls that reached upstream and provider since the last time. */
  async newReceipts(): Promise<readonly string[]> {
    // It answers after it has written down whatever a killed gateway sent.
    await (await fetch(this.#upstream.url)).text();
    const log = await text(createReadStream(this.#upstream.file, { start: this.#read }));
    this.#read += Buffer.byteLength(log);
    const bodies = log
      .split("\n")
      .filter((line) => line.includes("tools/call"))
      .map((line) => (JSON.parse(line) as Recorded).body);
    return [...bodies, ...this.#provider.calls.splice(0).map((call) => call.text)].map(markIn);
  }

  #config(): string {
    const keys = Object.entries(roleOf).map(([person, role]) => {
      const hash = hashOf(this.#keys[person as LoadPerson]);
      return `  - { id: ${person}, tenant: ${loadTenant}, role: ${role}, key_hash: "${hash}" }`;
    });
    const upstream = (name: string, prefix: string, capability: string): string =>
      `  - { name: ${name}, transport: http, url: "${this.#upstream.url}", protocol: legacy, connection: shared, tool_prefix: ${prefix}, capabilities: { echo: ${capability} } }`;
    const shipped = (name: string): string => `    - path: "${join(repositoryRoot, "policy-packs", name)}"`;
    return `
listen: { gateway_port: 0, admin_port: 0, metrics_port: 0 }
keys:
${keys.join("\n")}
upstreams:
${upstream("files", "read_", "read")}
${upstream("notes", "write_", "write")}
${upstream("desk", "desk_", "read")}
providers: [{ name: open, type: openai, base_url: "${this.#provider.baseUrl("openai")}", api_key_env: PROVIDER_KEY, models: [usual] }]
model_gateway: { routes: [{ model: usual, providers: [{ name: open }] }] }
policy:
  packs:
    - path: packs/desk
${shipped("baseline")}
${shipped("session-watch")}
sessions: { review_flood: { reviews: 0 }, risk: { kill_at: 0 } }
usage: { requests_per_minute: 1000000, tokens_per_minute: 1000000000 }
state: { mark: gateway.mark }
resilience: { enabled: true, tenant: ${loadTenant}, keep: 3 }
log: { level: warn }
`;
  }
}

/** The records from number `first` on in a copy of a data folder. */
export async function recordsFrom(dir: string, first: number): Promise<readonly EvidenceRecord[]> {
  const store = await openStore({ dir, enabled: true });
  const range = { gte: recordKey(loadTenant, first), lt: recordRange(loadTenant).lt };
  const texts = await store.values(range).all();
  await store.close();
  return texts.map((each) => JSON.parse(each) as EvidenceRecord);
}

/** The mark of a call as it reached the upstream, or of a request to a model. */
function markIn(body: string): string {
  const [, mark] = /"(?:mark|content)":"([^"]*)"/.exec(body) ?? [];
  if (mark === undefined) throw new Error(`expected a call with a mark, got ${body}`);
  return mark;
}

function hashOf(key: string): string {
  return `sha256:${createHash("sha256").update(key).digest("hex")}`;
}

function newKey(): string {
  return `test-${randomBytes(32).toString("base64url")}`;
}
