import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { JsonObject } from "../../core/action/json.ts";
import type { EventRecord } from "../../core/evidence/record/record.ts";
import { parseCheckpoint } from "../../core/evidence/tree/checkpoint.ts";
import { poisonedEntry } from "./catalog-entry.ts";
import { HeldSite, overHttp, type Person } from "./held-site.ts";
import { webhookSecret } from "./notify-world.ts";
import { type Recorder, startRecorder } from "./recorder.ts";
import { recordsIn } from "./review-world.ts";
import { answer, until, WebhookReceiver } from "./webhook-receiver.ts";
import { send, type WireRequest, type WireResponse } from "./wire.ts";

/** What one tenant has that another may name. */
export const kinds = [
  "session",
  "approval",
  "glass",
  "ticket",
  "letter",
  "task",
  "principal",
  "key",
  "decision",
  "definition",
] as const;
export type Kind = (typeof kinds)[number];

type Furniture = Readonly<Record<Kind | "own", string>>;

interface Page {
  readonly items: readonly Readonly<Record<string, string>>[];
}

export const hourAhead = (): string => new Date(Date.now() + 3_600_000).toISOString();

const manifest = { expected_tools: ["*"], expected_resources: ["*"], write_domains: ["*"], max_actions: 100 };

/**
 * Tenant `acme` has one of everything; `foreign` is an admin of `other`, which has a call that waits. All that the gateway
 * knows stays when it is stopped, until `remove`.
 */
export class ForeignWorld {
  readonly site: HeldSite;
  /** Of `acme`. */
  readonly ids: Readonly<Record<Kind, string>>;
  /** A session of `other`. */
  readonly own: string;
  readonly #folder: string;
  readonly #upstream: Recorder;
  readonly #receiver: WebhookReceiver;

  private constructor(
    site: HeldSite,
    { own, ...ids }: Furniture,
    parts: readonly [folder: string, upstream: Recorder, receiver: WebhookReceiver],
  ) {
    this.site = site;
    this.ids = ids;
    this.own = own;
    [this.#folder, this.#upstream, this.#receiver] = parts;
  }

  static async start(): Promise<ForeignWorld> {
    const folder = await mkdtemp(join(tmpdir(), "foreign-"));
    const upstream = await startRecorder();
    const receiver = await WebhookReceiver.start();
    receiver.respond = (response) => answer(response, 410);
    const webhook = `{ name: ops, tenant: acme, url: "${receiver.url}", secrets_env: [SECRET] }`;
    const site = new HeldSite({
      upstreams: [overHttp("recorder", upstream.url), poisonedEntry()],
      approvals: `allow_break_glass: true, webhooks: [${webhook}]`,
      env: { SECRET: webhookSecret },
      more: "resilience: { enabled: true, tenant: acme }",
      folder,
    });
    await site.start();
    return new ForeignWorld(site, await furnish(site), [folder, upstream, receiver]);
  }

  /** Asks the admin port. */
  ask(person: Person, method: string, path: string, body?: object): Promise<WireResponse> {
    return ask(this.site, person, method, path, body);
  }

  /** How many records the chain of `acme` has. */
  async size(): Promise<number> {
    const { body } = await this.ask("adam", "GET", "/admin/v1/evidence/checkpoint");
    return parseCheckpoint((JSON.parse(body) as { note: string }).note)?.size ?? -1;
  }

  /** What holders of keys of `tenant` were refused, in its chain. The gateway must have stopped. */
  async refused(tenant: string): Promise<readonly JsonObject[]> {
    const records: readonly EventRecord[] = await recordsIn(join(this.#folder, "data"), tenant);
    return records
      .filter(({ kind, detail }) => kind === "admin" && detail.action === "refused")
      .map((each) => each.detail);
  }

  async remove(): Promise<void> {
    await this.#upstream.stop();
    this.#receiver.stop();
    await rm(this.#folder, { recursive: true });
  }
}

/** An id of the same shape that nobody has. */
export function twinOf(id: string): string {
  return id.slice(0, -1) + (id.endsWith("0") ? "1" : "0");
}

/** An answer as it must be for any id: without what names the request, the time, and the id that was asked for. */
export function faceOf({ status, headers, body }: WireResponse, id: string): string {
  const told = [...headers].filter(([name]) => !/^(?:date|x-request-id|content-length|ratelimit.*)$/.test(name));
  const text = maskTimes(body).replaceAll(id, "<id>");
  return `${status}\n${told.map((header) => header.join(": ")).join("\n")}\n\n${text}`;
}

/** Without ids of requests and evaluations, times and durations, and digests over them. */
export function maskTimes(text: string): string {
  return text
    .replace(/sha256:[0-9a-f]{64}/g, "<digest>")
    .replace(/[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}/g, "<uuid>")
    .replace(/\d{4}-\d\d-\d\dT[\d:.]+Z/g, "<time>")
    .replace(/("\w*_us":)[\d.]+/g, "$1<duration>");
}

async function ask(
  site: HeldSite,
  person: Person,
  method: string,
  target: string,
  body?: object,
): Promise<WireResponse> {
  const request: WireRequest = {
    method,
    target,
    headers: [
      ["x-api-key", site.key(person)],
      ["content-type", "application/json"],
    ],
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  };
  return send(site.gateway.adminUrl, request);
}

async function furnish(site: HeldSite): Promise<Furniture> {
  const tell = async <T>(method: string, path: string, body?: object): Promise<T> => {
    const answered = await ask(site, "adam", method, `/admin/v1/${path}`, body);
    if (answered.status !== 200) throw new Error(`expected 200 of ${path}, got ${answered.status}: ${answered.body}`);
    return JSON.parse(answered.body) as T;
  };
  const approval = await site.hold("echo", { turn: 1 }, "agent", "of-acme");
  const glass = await site.hold("echo", { turn: 2 }, "agent");
  await tell("POST", `approvals/${glass}/approve`, { break_glass: "nobody else was awake" });
  await site.call("echo", { turn: 2 });
  await site.hold("echo", { turn: 3 }, "foreign");
  await site.agent().send("tools/list");
  const others = await ask(site, "foreign", "GET", "/admin/v1/evidence/sessions");
  const principal = site.principal("agent");
  const may = { principal, tools: ["echo"], targets: ["*"], capabilities: ["execute"] };
  for (const _ of [1, 2]) await tell("POST", "tickets", may);
  const tasks = ["nightly", "weekly"];
  for (const task of tasks)
    await tell("POST", "manifests", { ...manifest, task, principal: "agent", session: task, expires_at: hourAhead() });
  const letters = (): Promise<Page> => tell<Page>("GET", "webhooks/dead-letters");
  await until(async () => (await letters()).items.length > 1, "dead letters");
  const first = async (path: string): Promise<string> => (await tell<Page>("GET", path)).items[0]?.id ?? "none";
  await tell("POST", "kills", { scope: "principal", subject: site.principal("other") });
  await tell("POST", "kills", { scope: "session", subject: await first("evidence/sessions") });
  const held = await tell<{ approval: { evaluation: { id: string } } }>("GET", `approvals/${approval}`);
  return {
    own: (JSON.parse(others.body) as Page).items[0]?.id ?? "none",
    approval,
    decision: held.approval.evaluation.id,
    definition: await first("definitions"),
    glass,
    principal,
    task: "nightly",
    key: "agent",
    session: await first("evidence/sessions"),
    ticket: await first("tickets"),
    letter: (await letters()).items[0]?.id ?? "none",
  };
}
