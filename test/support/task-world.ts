import { createHash, generateKeyPairSync, type KeyObject, randomBytes } from "node:crypto";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { ManifestView } from "../../core/manifest/operation.ts";
import { signReference, type TaskClaims } from "../../core/manifest/reference.ts";
import { Agent } from "./agent.ts";
import { EvidenceReader } from "./evidence-reader.ts";
import { type RunningGateway, startGateway } from "./gateway.ts";
import { type ClientKind, connectClient, type McpClient } from "./mcp-client.ts";
import { allowEverything } from "./pack.ts";
import { type Recorder, startRecorder } from "./recorder.ts";

/** Who holds a key: `agent` and `other` act, `owner` declares and signs, `foreign` does so in another tenant. */
export type TaskPerson = "agent" | "other" | "owner" | "foreign";

const people: Readonly<Record<TaskPerson, readonly [tenant: string, role: string]>> = {
  agent: ["acme", "viewer"],
  other: ["acme", "viewer"],
  owner: ["acme", "operator"],
  foreign: ["umbrella", "operator"],
};

/** What the admin port said. */
export interface Told {
  readonly status: number;
  readonly body: Partial<ManifestView> & { readonly code?: string; readonly detail?: string };
}

/** A manifest of `agent` that expects everything. */
export const wideManifest = {
  task: "nightly",
  principal: "agent",
  expected_tools: ["*"],
  expected_resources: ["*"],
  write_domains: ["*"],
  max_actions: 1_000,
  expires_at: "",
} as const;

/** A gateway with one upstream, `files`, that keeps a log of its own and whose `echo` writes; and its task signers' keys. */
export class TaskWorld {
  readonly recorder: Recorder;
  readonly #folder: string;
  readonly #sessions: string;
  readonly #rules: string;
  readonly #signers = { owner: newSigner(), foreign: newSigner() };
  readonly #keys = Object.fromEntries(Object.keys(people).map((person) => [person, newKey()])) as Record<
    TaskPerson,
    string
  >;
  #gateway: RunningGateway | null = null;
  #agents: Agent[] = [];
  #clients: McpClient[] = [];

  private constructor(recorder: Recorder, folder: string, sessions: string, rules: string) {
    this.recorder = recorder;
    this.#folder = folder;
    this.#sessions = sessions;
    this.#rules = rules;
  }

  /**
   * `sessions`: members of that key, as YAML flow; nobody is stopped for reviews or risk unless it says so. `rules`: of a
   * pack that allows everything, further ones.
   */
  static async open(
    sessions: string = "review_flood: { reviews: 0 }, risk: { kill_at: 0 }",
    rules: string = "rules: []\n",
  ): Promise<TaskWorld> {
    const folder = await mkdtemp(join(tmpdir(), "task-world-"));
    const world = new TaskWorld(await startRecorder(), folder, sessions, rules);
    await world.start();
    return world;
  }

  get gateway(): RunningGateway {
    if (this.#gateway === null) throw new Error("the world has no gateway running");
    return this.#gateway;
  }

  get evidence(): EvidenceReader {
    return new EvidenceReader(this.gateway.adminUrl, this.#keys.owner);
  }

  key(person: TaskPerson): string {
    return this.#keys[person];
  }

  signer(person: "owner" | "foreign"): KeyObject {
    return this.#signers[person].privateKey;
  }

  async start(): Promise<void> {
    this.#gateway = await startGateway({
      config: this.#config(),
      files: { ...allowEverything("packs/open"), "packs/open/rules/more.yaml": this.#rules },
      folder: this.#folder,
    });
  }

  /** As a power cut would; then the same again. */
  async crash(): Promise<void> {
    await this.gateway.kill9();
    await this.#hangUp();
    await this.start();
  }

  async stop(): Promise<void> {
    await this.#hangUp();
    await this.#gateway?.stop();
    await this.recorder.stop();
    await rm(this.#folder, { recursive: true, force: true });
  }

  agent(person: TaskPerson = "agent", label?: string): Agent {
    const agent = new Agent(this.gateway.url, this.#keys[person], label);
    this.#agents.push(agent);
    return agent;
  }

  /** A client of an official SDK; `headers` beside its key. */
  async connect(kind: ClientKind, headers: Readonly<Record<string, string>> = {}): Promise<McpClient> {
    const endpoint = { url: `${this.gateway.url}/mcp`, headers: { "x-api-key": this.#keys.agent, ...headers } };
    const client = await connectClient(kind, endpoint);
    this.#clients.push(client);
    return client;
  }

  /** Declares `wideManifest` with what `changed` says otherwise. */
  declare(changed: object = {}, person: TaskPerson = "owner"): Promise<Told> {
    return this.admin("POST", "/admin/v1/manifests", person, {
      ...wideManifest,
      expires_at: inSeconds(3_600),
      ...changed,
    });
  }

  async admin(method: string, path: string, person: TaskPerson = "owner", body?: object): Promise<Told> {
    const response = await fetch(this.gateway.adminUrl + path, {
      method,
      headers: { "x-api-key": this.#keys[person], "content-type": "application/json" },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    return { status: response.status, body: (await response.json()) as Told["body"] };
  }

  /** A reference to a manifest that is in force, with what `changed` says otherwise. */
  async reference(
    task: string,
    changed: Partial<TaskClaims> = {},
    key: KeyObject = this.signer("owner"),
  ): Promise<string> {
    const { body } = await this.admin("GET", `/admin/v1/manifests/${task}`);
    const exp = Math.floor(Date.now() / 1_000) + 600;
    const claims = { tenant: "acme", principal: "agent", task, manifest: body.digest ?? "", exp };
    return signReference({ ...claims, ...changed }, key);
  }

  /** How many calls of tools reached the upstream. */
  async reached(): Promise<number> {
    return (await this.recorder.calls()).length;
  }

  /** The lines of a metric. */
  async metric(name: string): Promise<string> {
    const text = await (await fetch(`${this.gateway.metricsUrl}/metrics`)).text();
    return text
      .split("\n")
      .filter((line) => line.startsWith(name))
      .join("\n");
  }

  async #hangUp(): Promise<void> {
    await Promise.allSettled(this.#clients.splice(0).map((client) => client.close()));
    await Promise.all(this.#agents.splice(0).map((agent) => agent.hangUp()));
  }

  #config(): string {
    const keys = Object.entries(people).map(([person, [tenant, role]]) => {
      const hash = createHash("sha256")
        .update(this.#keys[person as TaskPerson])
        .digest("hex");
      return `  - { id: ${person}, tenant: ${tenant}, role: ${role}, key_hash: "sha256:${hash}" }`;
    });
    const signers = Object.entries(this.#signers).map(([id, { spki }]) => {
      return `{ id: ${id}, tenant: ${id === "owner" ? "acme" : "umbrella"}, public_key: "${spki}" }`;
    });
    return `
listen: { gateway_port: 0, admin_port: 0, metrics_port: 0 }
keys:
${keys.join("\n")}
upstreams:
  - name: files
    transport: http
    url: "${this.recorder.url}"
    protocol: legacy
    connection: shared
    capabilities: { echo: write, deep: read }
providers: [{ name: mock, type: mock, models: [mock] }]
model_gateway: { routes: [{ model: mock, providers: [{ name: mock }] }] }
usage: { requests_per_minute: 100000 }
policy: { packs: [{ path: packs/open }] }
sessions: { ${this.#sessions}, task_signers: [${signers.join(", ")}] }
`;
  }
}

/** As `expires_at` is spelt. */
export function inSeconds(seconds: number): string {
  return new Date(Date.now() + seconds * 1_000).toISOString();
}

function newSigner(): { readonly privateKey: KeyObject; readonly spki: string } {
  const { privateKey, publicKey } = generateKeyPairSync("ed25519");
  return { privateKey, spki: publicKey.export({ format: "der", type: "spki" }).toString("base64") };
}

function newKey(): string {
  return `test-${randomBytes(32).toString("base64url")}`;
}
