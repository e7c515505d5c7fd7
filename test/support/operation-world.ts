import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { EventRecord } from "../../core/evidence/record/record.ts";
import { poisonedEntry } from "./catalog-entry.ts";
import { HeldSite, overHttp, type Person } from "./held-site.ts";
import { webhookSecret } from "./notify-world.ts";
import { type Recorder, startRecorder } from "./recorder.ts";
import { recordsIn } from "./review-world.ts";
import type { AdminRouteId } from "./route-table.ts";
import { answer, until, WebhookReceiver } from "./webhook-receiver.ts";

/** What is asked of one operation. */
export interface Asking {
  /** What its path names. */
  readonly id?: () => Promise<string> | string;
  readonly query?: Readonly<Record<string, string | number>>;
  readonly body?: () => object;
}

const trial = `rules:
  - id: open.trial
    title: What would be blocked
    decision: block
    severity: low
    risk: 10
    mode: shadow
    match: { phase: input, tool: echo }
    message: on trial
`;

const more = `
resilience: { enabled: true, tenant: acme }
providers: [{ name: mock, type: mock, models: [mock] }]
model_gateway: { routes: [{ model: mock, providers: [{ name: mock }] }] }
tickets: { allow_self_issue: true }
`;

/** A gateway in which every list of the admin port has something to tell, and every operation something to act on. */
export class OperationWorld {
  readonly site: HeldSite;
  readonly #folder: string;
  readonly #upstream: Recorder;
  readonly #receiver: WebhookReceiver;
  #turn = 0;

  private constructor(folder: string, upstream: Recorder, receiver: WebhookReceiver, further: string) {
    this.#folder = folder;
    this.#upstream = upstream;
    this.#receiver = receiver;
    const webhook = `{ name: ops, tenant: acme, url: "${receiver.url}", secrets_env: [SECRET] }`;
    this.site = new HeldSite({
      alone: true,
      upstreams: [overHttp("recorder", upstream.url), poisonedEntry()],
      approvals: `allow_break_glass: true, webhooks: [${webhook}]`,
      env: { SECRET: webhookSecret },
      rules: trial,
      more: more + further,
      folder,
    });
  }

  /** `further`: more top-level keys of `gateway.yaml`. */
  static async start(further = ""): Promise<OperationWorld> {
    const receiver = await WebhookReceiver.start();
    receiver.respond = (response) => answer(response, 410);
    const folder = await mkdtemp(join(tmpdir(), "operation-"));
    const world = new OperationWorld(folder, await startRecorder(), receiver, further);
    await world.site.start();
    await world.#live();
    return world;
  }

  async stop(): Promise<void> {
    await this.site.stop().catch(() => undefined); // it may be stopped already
    await this.#upstream.stop();
    this.#receiver.stop();
    await rm(this.#folder, { recursive: true });
  }

  /** Starts the gateway again on what a kill left, with this environment beside its own. */
  async startAgain(env: Readonly<Record<string, string>> = {}): Promise<void> {
    await this.site.hangUp();
    await this.site.start({ env: { ...this.site.options.env, ...env } });
  }

  /** Stops the gateway, and reads what it leaves in the chain of a tenant. */
  async leave(tenants: readonly string[]): Promise<readonly (readonly EventRecord[])[]> {
    await this.site.stop();
    const chains: (readonly EventRecord[])[] = [];
    for (const tenant of tenants) chains.push(await recordsIn(join(this.#folder, "data"), tenant));
    return chains;
  }

  /** How many calls the upstream has had. */
  async calls(): Promise<number> {
    return (await this.#upstream.calls()).length;
  }

  get url(): string {
    return this.site.gateway.adminUrl;
  }

  /** Asks the admin port; throws for every answer but 2xx. */
  async ask<T>(path: string, person: Person = "adam", body?: object): Promise<T> {
    const response = await fetch(`${this.url}/admin/v1/${path}`, {
      method: body === undefined ? "GET" : "POST",
      headers: { "x-api-key": this.site.key(person), "content-type": "application/json" },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    if (!response.ok) throw new Error(`expected 2xx of ${path}, got ${response.status}: ${await response.text()}`);
    return (await response.json()) as T;
  }

  /** A new approval that waits. */
  held(): Promise<string> {
    return this.site.hold("echo", { turn: ++this.#turn });
  }

  async session(): Promise<string> {
    return (await this.#first("sessions")).session as string;
  }

  /** The decision that held a call. */
  async decision(): Promise<string> {
    const { approval } = await this.ask<{ approval: { evaluation: { id: string } } }>(`approvals/${await this.held()}`);
    return approval.evaluation.id;
  }

  /** A new ticket. */
  async ticket(): Promise<string> {
    const { ticket } = await this.ask<{ ticket: { id: string } }>("tickets", "adam", this.order());
    return ticket.id;
  }

  /** The definition of a tool that is withheld. */
  async definition(): Promise<string> {
    await this.site.agent().send("tools/list");
    return (await this.#first("definitions")).id as string;
  }

  async letter(): Promise<string> {
    return (await this.#first("webhooks/dead-letters")).id as string;
  }

  /** An approval that was given by break-glass, used, and not accounted for. */
  async emergency(): Promise<string> {
    const id = await this.held();
    await this.ask(`approvals/${id}/approve`, "adam", { break_glass: "nobody else was awake" });
    await this.site.call("echo", { turn: this.#turn });
    return id;
  }

  /** Resolves once no prune or erasure runs, with no id: there is one at a time. */
  async jobsEnded(): Promise<string> {
    await until(async () => (await this.#items("evidence/jobs")).every(({ state }) => state === "complete"), "a job");
    return "";
  }

  order(): object {
    return { principal: this.site.principal("agent"), tools: ["echo"], targets: ["*"], capabilities: ["execute"] };
  }

  manifest(task = "nightly"): object {
    return {
      task,
      principal: "agent",
      expected_tools: ["*"],
      expected_resources: ["*"],
      write_domains: ["*"],
      max_actions: 100,
      expires_at: new Date(Date.now() + 3_600_000).toISOString(),
    };
  }

  /** What is asked of each operation so that it does what it is for, in an order in which each can. */
  askings(): Readonly<Record<AdminRouteId, Asking>> {
    const session = (): Promise<string> => this.session();
    const action = { tool: "echo", target: "echo", arguments: { a: 1 } };
    const query = "{ evidence { state seq } }";
    return {
      "admin.health": {},
      "admin.metrics": {},
      "admin.openapi": {},
      "admin.sessions": { query: { limit: 5 } },
      "admin.session": { id: session, query: { disclose: "true" } },
      "admin.export": { id: session },
      "admin.report": { id: session },
      "admin.verify": {},
      "admin.evidence_verify": {},
      "admin.checkpoint": {},
      "admin.keys": {},
      "admin.rotate": {},
      "admin.approvals": { query: { state: "pending" } },
      "admin.approval": { id: () => this.held() },
      "admin.approve": { id: () => this.held(), body: () => ({ comment: "fine", scope: "exact" }) },
      "admin.deny": { id: () => this.held(), body: () => ({ comment: "no" }) },
      "admin.approval_history": {},
      "admin.break_glass": {},
      "admin.break_glass_close": {
        id: () => this.emergency(),
        body: () => ({ post_mortem: "it was down; two people were told" }),
      },
      "admin.explain": { id: () => this.decision() },
      "admin.policies": {},
      "admin.plugins": {},
      "admin.rules": {},
      "admin.test_action": { body: () => ({ ...action, explain: true }) },
      "admin.simulate": { body: () => ({ actions: [action, { tool: "other", target: "x" }] }) },
      "admin.shadow_decisions": {},
      "admin.graphql": { body: () => ({ query }) },
      "admin.graphql_get": { query: { query } },
      "admin.usage": { query: { by: "day,principal,provider,model" } },
      "admin.upstreams": {},
      "admin.providers": {},
      "admin.dead_letters": {},
      "admin.redeliver": { id: () => this.letter() },
      "admin.session_list": { query: { sort: "last" } },
      "admin.session_state": { id: session },
      "admin.session_reset": { id: session, body: () => ({ reason: "seen" }) },
      "admin.kill": { id: session, body: () => ({ note: "odd" }) },
      "admin.killed": {},
      "admin.release": { id: session, body: () => ({ reason: "looked at" }) },
      "admin.kill_scope": { body: () => ({ scope: "tenant", note: "odd" }) },
      "admin.kills": {},
      "admin.release_scope": { body: () => ({ scope: "tenant", reason: "looked at" }) },
      "admin.ticket_issue": { body: () => this.order() },
      "admin.tickets": {},
      "admin.ticket_keys": {},
      "admin.ticket_revoke": { id: () => this.ticket(), body: () => ({ reason: "no need" }) },
      "admin.declare": { body: () => this.manifest() },
      "admin.definitions": {},
      "admin.definition": { id: () => this.definition() },
      "admin.definition_deny": { id: () => this.definition(), body: () => ({ comment: "no" }) },
      "admin.definition_approve": { id: () => this.definition(), body: () => ({ comment: "fine" }) },
      "admin.manifests": {},
      "admin.manifest": { id: () => "nightly" },
      "admin.withdraw": { id: () => "nightly" },
      "admin.prune": { body: () => ({ before: "2026-01-31T00:00:00Z", reason: "a year" }) },
      "admin.evidence_jobs": {},
      "admin.erase": {
        id: () => this.jobsEnded(),
        body: () => ({ seq: 1, fields: ["arguments.email"], reason: "asked by letter" }),
      },
      "admin.backup": {},
      "admin.backups": {},
    };
  }

  /** Something for each list: a call that ran, one that waits, one that is open to be accounted for, a dead letter, usage. */
  async #live(): Promise<void> {
    await this.held();
    await this.emergency();
    await this.emergency();
    const asked = await fetch(`${this.site.gateway.url}/v1/chat/completions`, {
      method: "POST",
      headers: { "x-api-key": this.site.key("agent"), "content-type": "application/json" },
      body: JSON.stringify({ model: "mock", messages: [{ role: "user", content: "hello" }] }),
    });
    if (asked.status !== 200) throw new Error(`expected the model to answer, got ${asked.status}`);
    await until(async () => (await this.#items("webhooks/dead-letters")).length > 0, "a dead letter");
  }

  async #items(path: string): Promise<readonly Readonly<Record<string, unknown>>[]> {
    return (await this.ask<{ items: Record<string, unknown>[] }>(path)).items;
  }

  async #first(path: string): Promise<Readonly<Record<string, unknown>>> {
    const [first] = await this.#items(path);
    if (first === undefined) throw new Error(`expected ${path} to have an item`);
    return first;
  }
}
