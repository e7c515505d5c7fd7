import { randomBytes } from "node:crypto";
import { cp, mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { principalId } from "../../core/action/principal.ts";
import type { Role } from "../../core/action/role.ts";
import { type GeneratedKey, generateKey } from "../../core/identity/key-ring.ts";
import { repositoryRoot } from "../check/source-tree.ts";
import { poisonedEntry } from "../support/catalog-entry.ts";
import { runCommand } from "../support/command-host.ts";
import { type RunningGateway, startGateway } from "../support/gateway.ts";
import { connectClient, type McpClient } from "../support/mcp-client.ts";
import { webhookSecret } from "../support/notify-world.ts";
import { allowEverything } from "../support/pack.ts";
import { makeSigner, trustEntry } from "../support/trust-world.ts";
import { answer, until, WebhookReceiver } from "../support/webhook-receiver.ts";

/** Who holds a key: `finn` administers another tenant, in which `fay` is the agent. */
const people = {
  ada: ["acme", "admin"],
  otto: ["acme", "operator"],
  vera: ["acme", "viewer"],
  agent: ["acme", "viewer"],
  finn: ["globex", "admin"],
  fay: ["globex", "viewer"],
} as const satisfies Readonly<Record<string, readonly [tenant: string, role: Role]>>;

type Person = keyof typeof people;
type Keys = Readonly<Record<Person, GeneratedKey>>;

const demoServer = fileURLToPath(new URL("../../core/upstream/demo/server.js", import.meta.url));
const signer = makeSigner();

const trialRule = `rules:
  - id: open.notes
    title: Notes are private
    decision: block
    severity: low
    risk: 5
    match: { phase: input, tool: list_notes }
    message: notes are listed
`;

/**
 * A gateway as in production, strict about signatures, before the demo server and the mock provider, of which two tenants have
 * made use: calls that ran, one that was blocked, one that waits for a reviewer in each tenant, one that was denied, a request
 * of a model, what a rule on trial would have done, and a notice that its receiver refused.
 */
export class LiveWorld {
  readonly gateway: RunningGateway;
  readonly #folder: string;
  readonly #receiver: WebhookReceiver;
  readonly #keys: Keys;
  readonly #clients: McpClient[] = [];
  /** What steps find in their environment. */
  readonly env: Record<string, string> = {};

  private constructor(gateway: RunningGateway, folder: string, receiver: WebhookReceiver, keys: Keys) {
    this.gateway = gateway;
    this.#folder = folder;
    this.#receiver = receiver;
    this.#keys = keys;
  }

  /** `poisoned`: with another server, two of whose tools are withheld. */
  static async open({ poisoned = false } = {}): Promise<LiveWorld> {
    const folder = await mkdtemp(join(tmpdir(), "live-world-"));
    const made = Object.keys(people).map((person) => [person, generateKey(randomBytes)]);
    const keys = Object.fromEntries(made) as Keys;
    const receiver = await WebhookReceiver.start();
    receiver.respond = (response) => answer(response, 410);
    await writeExtensions(folder);
    const gateway = await startGateway({
      folder,
      config: configOf(keys, receiver.url, poisoned ? `  - ${poisonedEntry()}\n` : ""),
      env: { WEBHOOK_SECRET: webhookSecret },
    });
    const world = new LiveWorld(gateway, folder, receiver, keys);
    await world.#use();
    if (poisoned) await world.#awaitWithheld();
    return world;
  }

  async close(): Promise<void> {
    await Promise.all(this.#clients.map((client) => client.close()));
    await this.gateway.stop();
    this.#receiver.stop();
    await rm(this.#folder, { recursive: true });
  }

  /** Makes use of the gateway, as agents and a reviewer do, and notes what came of it in `env`. */
  async #use(): Promise<void> {
    const agent = await this.#connect("agent");
    await agent.callTool("list_notes");
    await agent.callTool("delete_note", { title: "plan" });
    await agent.callTool("write_note", { title: "plan", text: "Ship it." });
    await agent.callTool("write_note", { title: "draft", text: "Not yet." });
    const foreign = await this.#connect("fay");
    await foreign.callTool("list_notes");
    await foreign.callTool("write_note", { title: "ours", text: "Nobody else's." });
    await this.#askModel();
    const [pending = "", denied = ""] = await this.#ids("otto", "approvals");
    await this.#ask("otto", `approvals/${denied}/deny`, { comment: "not now" });
    await until(async () => (await this.#ids("ada", "webhooks/dead-letters")).length > 2, "dead letters");
    Object.assign(this.env, {
      GATEWAY_ADMIN_URL: this.gateway.adminUrl,
      GATEWAY_API_KEY: this.#keys.otto.key,
      ADMIN_KEY: this.#keys.ada.key,
      VIEWER_KEY: this.#keys.vera.key,
      AGENT_KEY: this.#keys.agent.key,
      FOREIGN_KEY: this.#keys.finn.key,
      GATEWAY_URL: this.gateway.url,
      AGENT_URL: `${this.gateway.url}/mcp`,
      AGENT: principalId("acme", this.#keys.agent.keyHash),
      PENDING: pending,
      DENIED: denied,
      FOREIGN_PENDING: (await this.#ids("finn", "approvals"))[0] ?? "",
      SESSION: (await this.#ids("otto", "sessions?sort=last", "session"))[0] ?? "",
      FOREIGN_SESSION: (await this.#ids("finn", "sessions", "session"))[0] ?? "",
      LETTER: (await this.#ids("ada", "webhooks/dead-letters"))[0] ?? "",
      SIGNER: signer.pem,
    });
  }

  async #awaitWithheld(): Promise<void> {
    const agent = await this.#connect("agent");
    await until(async () => {
      await agent.listTools();
      return (await this.#ids("otto", "definitions")).length === 2;
    }, "two withheld definitions");
  }

  async #connect(person: Person): Promise<McpClient> {
    const headers = { "x-api-key": this.#keys[person].key };
    const client = await connectClient("v2 modern", { url: `${this.gateway.url}/mcp`, headers });
    this.#clients.push(client);
    return client;
  }

  async #askModel(): Promise<void> {
    const response = await fetch(`${this.gateway.url}/v1/chat/completions`, {
      method: "POST",
      headers: { "x-api-key": this.#keys.agent.key, "content-type": "application/json" },
      body: JSON.stringify({ model: "mock", messages: [{ role: "user", content: "Say hello." }] }),
    });
    if (!response.ok) throw new Error(`expected the mock provider to answer, got ${await response.text()}`);
  }

  async #ids(person: Person, path: string, member = "id"): Promise<readonly string[]> {
    const { items } = (await this.#ask(person, path)) as {
      readonly items: readonly Readonly<Record<string, string>>[];
    };
    return items.map((item) => item[member] ?? "");
  }

  async #ask(person: Person, path: string, message?: object): Promise<unknown> {
    const response = await fetch(`${this.gateway.adminUrl}/admin/v1/${path}`, {
      method: message === undefined ? "GET" : "POST",
      headers: { "x-api-key": this.#keys[person].key, "content-type": "application/json" },
      ...(message === undefined ? {} : { body: JSON.stringify(message) }),
    });
    if (!response.ok) throw new Error(`${path}: ${response.status} ${await response.text()}`);
    return response.json();
  }
}

/** Signed copies of the baseline pack and a plugin, a pack on trial, and who is trusted. */
async function writeExtensions(folder: string): Promise<void> {
  await mkdir(join(folder, "plugins"));
  await cp(join(repositoryRoot, "policy-packs/baseline"), join(folder, "packs/baseline"), { recursive: true });
  const plugin = join(repositoryRoot, "plugins/secret-egress");
  await cp(plugin, join(folder, "plugins/secret-egress"), {
    recursive: true,
    filter: (path) => !path.slice(plugin.length).startsWith("/build"),
  });
  for (const [path, text] of Object.entries(allowEverything("packs/trial"))) {
    await mkdir(join(folder, path, ".."), { recursive: true });
    await writeFile(join(folder, path), path.endsWith("all.yaml") ? trialRule : text);
  }
  await writeFile(join(folder, "trust.yaml"), `all_of: [${trustEntry("ops", signer)}]\n`);
  await writeFile(join(folder, "signer.pem"), signer.pem, { mode: 0o600 });
  for (const [kind, path] of [
    ["pack", "packs/baseline"],
    ["pack", "packs/trial"],
    ["plugin", "plugins/secret-egress"],
  ] as const) {
    const { code, stderr } = await runCommand([kind, "sign", join(folder, path), "--key", join(folder, "signer.pem")]);
    if (code !== 0) throw new Error(stderr);
  }
}

/** `further`: more items of `upstreams`. */
function configOf(keys: Keys, hook: string, further: string): string {
  const entries = Object.entries(people).map(
    ([id, [tenant, role]]) =>
      `  - { id: ${id}, tenant: ${tenant}, role: ${role}, key_hash: "${keys[id as Person].keyHash}" }`,
  );
  return `
listen: { gateway_port: 0, admin_port: 0, metrics_port: 0 }
data_dir: data
keys:
${entries.join("\n")}
upstreams:
  - name: demo
    transport: stdio
    command: ${process.execPath}
    args: ["${demoServer}"]
    capabilities: { list_notes: read, read_note: read, write_note: write, delete_note: delete }
${further}providers: [{ name: mock, type: mock, models: [mock] }]
model_gateway: { routes: [{ model: mock, providers: [{ name: mock }] }] }
policy:
  packs: [{ path: packs/baseline }, { path: packs/trial, mode: shadow }]
  plugins: [{ path: plugins/secret-egress, phases: [input] }]
extensions: { strict: true, trust_policy: trust.yaml }
sessions: { gateway_tenant: acme }
approvals:
  allow_break_glass: true
  webhooks: [{ name: ops, tenant: acme, url: "${hook}", secrets_env: [WEBHOOK_SECRET] }]
resilience: { enabled: true, tenant: acme }
`;
}
