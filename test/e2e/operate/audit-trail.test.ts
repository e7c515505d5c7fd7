import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect } from "chai";
import type { JsonObject } from "../../../core/action/json.ts";
import type { ActionRecord, EventRecord } from "../../../core/evidence/record/record.ts";
import { parseCheckpoint } from "../../../core/evidence/tree/checkpoint.ts";
import { poisonedEntry } from "../../support/catalog-entry.ts";
import { HeldSite, overHttp } from "../../support/held-site.ts";
import { webhookSecret } from "../../support/notify-world.ts";
import { type Recorder, startRecorder } from "../../support/recorder.ts";
import { recordsIn } from "../../support/review-world.ts";
import { type AdminRouteId, type RouteId, routes } from "../../support/route-table.ts";
import { answer, until, WebhookReceiver } from "../../support/webhook-receiver.ts";
import { send } from "../../support/wire.ts";

/** What a call of a route leaves in the chain of its caller's tenant. */
interface Trail {
  /** What stands for `:id` in its path, and in what it leaves. */
  readonly about?: () => Promise<string>;
  readonly query?: string;
  readonly body?: object | (() => object);
  /** 200 unless told. */
  readonly status?: number;
  readonly kind: EventRecord["kind"];
  /** Given the principal of the caller and the id it was about. */
  readonly detail: (by: string, about: string) => JsonObject;
}

/** A call of a route: what it answered, and the chain's size before and after it. */
interface Called {
  readonly status: number;
  readonly about: string;
  readonly from: number;
  readonly to: number;
}

/** What is asked of routes that only look, where they have to be asked something. */
const looks: Partial<Readonly<Record<AdminRouteId, Pick<Trail, "about" | "body" | "query">>>> = {
  "admin.graphql": { body: { query: "{ evidence { seq } }" } },
  "admin.graphql_get": { query: `?query=${encodeURIComponent("{ evidence { seq } }")}` },
};

function bodyOf(trail: Pick<Trail, "body"> | null | undefined): object {
  const body = trail?.body ?? {};
  return typeof body === "function" ? body() : body;
}

/** Calls every route of the admin port as `adam`, then stops the gateway and reads what they left. */
describe("what is done over the admin port is on record with who did it", () => {
  let folder: string;
  let upstream: Recorder;
  let receiver: WebhookReceiver;
  let site: HeldSite;
  let turn = 0;
  const called = new Map<string, Called>();
  let records: readonly EventRecord[];

  const withheld = async (): Promise<string> =>
    (await ask<{ items: { id: string }[] }>("definitions")).items[0]?.id ?? "none";
  const looksHere = { ...looks, "admin.definition": { about: withheld } };
  const held = (): Promise<string> => site.hold("echo", { turn: ++turn });
  const session = async (): Promise<string> => (await site.evidence.sessions())[0]?.id ?? "none";
  const reason = "nobody else was awake";
  const manifest = {
    task: "nightly",
    principal: "agent",
    expected_tools: ["*"],
    expected_resources: ["*"],
    write_domains: ["*"],
    max_actions: 100,
    expires_at: new Date(Date.now() + 3_600_000).toISOString(),
  };
  const postMortem = "it was down; two people were told";

  /**
   * The compiler asks for an entry for each route of the admin port. Null: it changes nothing and shows no private field,
   * and leaves no record.
   */
  const trails: Readonly<Record<AdminRouteId, Trail | null>> = {
    "admin.health": null,
    "admin.metrics": null,
    "admin.sessions": null,
    "admin.session": {
      about: session,
      query: "?disclose=true",
      kind: "admin",
      detail: (principal, about) => ({ action: "evidence.disclose", principal, session: about }),
    },
    "admin.export": {
      about: session,
      kind: "admin",
      detail: (principal, about) => ({ action: "evidence.export", principal, session: about }),
    },
    "admin.report": {
      about: session,
      kind: "admin",
      detail: (principal, about) => ({ action: "evidence.report", principal, session: about }),
    },
    "admin.verify": { kind: "admin", detail: (principal) => ({ action: "audit.verify", principal, ok: true }) },
    "admin.evidence_verify": {
      kind: "admin",
      detail: (principal) => ({ action: "evidence.verify", principal, ok: true }),
    },
    "admin.checkpoint": null,
    "admin.keys": null,
    "admin.rotate": { kind: "admin", detail: (principal) => ({ action: "evidence.rotate", principal }) },
    "admin.approvals": null,
    "admin.approval_history": null,
    "admin.approval": {
      about: held,
      kind: "admin",
      detail: (principal, approval) => ({ action: "approval.disclose", principal, approval }),
    },
    "admin.approve": {
      about: held,
      body: { comment: "fine" },
      kind: "approval",
      detail: (reviewer, id) => ({ event: "approved", reviewer, id, comment: "fine" }),
    },
    "admin.deny": {
      about: held,
      kind: "approval",
      detail: (reviewer, id) => ({ event: "denied", reviewer, id }),
    },
    "admin.break_glass": null,
    "admin.break_glass_close": {
      about: async () => {
        const id = await held();
        expect((await site.review(id, "approve", "adam", { break_glass: reason })).status).to.equal(200);
        await site.call("echo", { turn });
        return id;
      },
      body: { post_mortem: postMortem },
      kind: "approval",
      detail: (by, id) => ({ event: "post_mortem", by, id, text: postMortem }),
    },
    "admin.explain": {
      about: async () => {
        const { items } = await ask<{ items: readonly Partial<ActionRecord>[] }>(
          `evidence/sessions/${await session()}`,
        );
        return items.find(({ kind }) => kind === "decision")?.evaluation?.id ?? "none";
      },
      kind: "admin",
      detail: (principal, decision) => ({ action: "decision.explain", principal, decision }),
    },
    "admin.policies": null,
    "admin.plugins": null,
    "admin.rules": null,
    "admin.test_action": {
      body: { tool: "echo", target: "echo" },
      kind: "admin",
      detail: (principal) => ({ action: "policy.test_action", principal, count: 1 }),
    },
    "admin.simulate": {
      body: { actions: [{ tool: "echo", target: "echo" }] },
      kind: "admin",
      detail: (principal) => ({ action: "policy.simulate", principal, count: 1 }),
    },
    "admin.shadow_decisions": null,
    "admin.graphql": null,
    "admin.graphql_get": null,
    "admin.usage": null,
    "admin.upstreams": null,
    "admin.providers": null,
    "admin.dead_letters": null,
    "admin.redeliver": {
      about: async () => {
        await held();
        await until(async () => (await deadLetters()).length > 0, "a dead letter");
        return (await deadLetters())[0]?.id ?? "none";
      },
      kind: "admin",
      detail: (principal, id) => ({ action: "webhook.redeliver", principal, webhook_id: id }),
    },
    "admin.session_list": null,
    "admin.killed": null,
    "admin.session_state": null,
    "admin.session_reset": {
      about: session,
      body: { reason: "seen" },
      kind: "session",
      detail: (by, about) => ({ event: "reset", by, session: about, reason: "seen" }),
    },
    "admin.kills": null,
    "admin.kill_scope": {
      body: { scope: "tenant", note: "odd" },
      kind: "session",
      detail: (by) => ({ event: "killed", scope: "tenant", by, note: "odd" }),
    },
    "admin.release_scope": {
      body: { scope: "tenant", reason: "looked at" },
      kind: "session",
      detail: (by) => ({ event: "released", scope: "tenant", by, reason: "looked at" }),
    },
    "admin.kill": {
      about: session,
      body: { note: "odd" },
      kind: "session",
      detail: (by, about) => ({ event: "killed", by, session: about, note: "odd" }),
    },
    "admin.release": {
      about: session,
      body: { reason: "looked at" },
      kind: "session",
      detail: (by, about) => ({ event: "released", by, session: about }),
    },
    "admin.tickets": null,
    "admin.ticket_issue": {
      body: () => ({ principal: site.principal("agent"), tools: ["echo"], targets: ["*"], capabilities: ["execute"] }),
      kind: "ticket",
      detail: (by) => ({ event: "issued", by, principal: site.principal("agent"), max_uses: 1 }),
    },
    "admin.ticket_keys": null,
    "admin.ticket_revoke": {
      about: async () => (await ask<{ items: { id: string }[] }>("tickets")).items[0]?.id ?? "none",
      body: { reason: "no need" },
      kind: "ticket",
      detail: (by, ticket) => ({ event: "revoked", by, ticket, reason: "no need" }),
    },
    "admin.backup": {
      status: 202,
      kind: "admin",
      detail: (principal) => ({ action: "backup.create", principal }),
    },
    "admin.backups": null,
    "admin.prune": {
      body: { before: "2026-01-31T00:00:00.000Z" },
      status: 202,
      kind: "admin",
      detail: (principal) => ({ action: "evidence.prune", principal, before: "2026-01-31T00:00:00.000Z" }),
    },
    "admin.erase": {
      about: jobsEnded,
      body: { seq: 1, fields: ["arguments.email"], reason: "asked by letter" },
      status: 202,
      kind: "admin",
      detail: (principal) => ({ action: "evidence.erase", principal, seq: 1 }),
    },
    "admin.evidence_jobs": null,
    "admin.openapi": null,
    "admin.declare": {
      body: manifest,
      kind: "admin",
      detail: (principal) => ({ action: "manifest.declare", principal, manifest }),
    },
    "admin.definitions": null,
    "admin.definition": null,
    "admin.definition_approve": {
      about: withheld,
      body: { comment: "fine" },
      kind: "admin",
      detail: (principal, id) => ({ action: "definition.approve", principal, id, comment: "fine" }),
    },
    "admin.definition_deny": {
      about: withheld,
      kind: "admin",
      detail: (principal, id) => ({ action: "definition.deny", principal, id }),
    },
    "admin.manifests": null,
    "admin.manifest": null,
    "admin.withdraw": {
      kind: "admin",
      detail: (principal) => ({ action: "manifest.withdraw", principal, task: manifest.task }),
    },
  };
  const entries = Object.entries(trails) as [AdminRouteId, Trail | null][];

  before(async () => {
    folder = await mkdtemp(join(tmpdir(), "audit-trail-"));
    upstream = await startRecorder();
    receiver = await WebhookReceiver.start();
    receiver.respond = (response) => answer(response, 410);
    const webhook = `{ name: ops, tenant: acme, url: "${receiver.url}", secrets_env: [SECRET] }`;
    site = new HeldSite({
      alone: true,
      upstreams: [overHttp("recorder", upstream.url), poisonedEntry()],
      approvals: `allow_break_glass: true, webhooks: [${webhook}]`,
      env: { SECRET: webhookSecret },
      more: "resilience: { enabled: true, tenant: acme }",
      folder,
    });
    await site.start();
    await held();
    await site.agent().send("tools/list");
    // The first ticket of a tenant makes the key that it is signed with, which is an event of its own.
    await call("admin.ticket_issue", trails["admin.ticket_issue"]);
    for (const [id, trail] of entries) called.set(id, await call(id, trail));
    await site.stop();
    records = await recordsIn(join(folder, "data"));
  });

  after(async () => {
    await upstream.stop();
    receiver.stop();
    await rm(folder, { recursive: true });
  });

  async function call(id: AdminRouteId, trail: Trail | null): Promise<Called> {
    const about = (await (trail ?? looksHere[id])?.about?.()) ?? (await session());
    const { method, path } = routes[id];
    const from = await size();
    const { status } = await send(site.gateway.adminUrl, {
      method,
      target: path.replace(":id", about).replace(":task", manifest.task) + ((trail ?? looks[id])?.query ?? ""),
      headers: [
        ["x-api-key", site.key("adam")],
        ["content-type", "application/json"],
      ],
      ...(method === "GET" ? {} : { body: JSON.stringify(bodyOf(trail ?? looks[id])) }),
    });
    return { status, about, from, to: await size() };
  }

  /** Of the tenant's chain: how many records its checkpoint covers. */
  async function size(): Promise<number> {
    const { note } = await ask<{ note: string }>("evidence/checkpoint");
    return parseCheckpoint(note)?.size ?? -1;
  }

  /** Resolves once no prune runs: one at a time. */
  async function jobsEnded(): Promise<string> {
    await until(async () => {
      const { items } = await ask<{ items: { state: string }[] }>("evidence/jobs");
      return items.every(({ state }) => state === "complete");
    }, "the end of the prune");
    return "none";
  }

  async function deadLetters(): Promise<readonly { readonly id: string }[]> {
    return (await ask<{ items: { id: string }[] }>("webhooks/dead-letters")).items;
  }

  async function ask<T>(path: string): Promise<T> {
    const headers = [["x-api-key", site.key("adam")]] as const;
    return JSON.parse((await send(site.gateway.adminUrl, { target: `/admin/v1/${path}`, headers })).body) as T;
  }

  it("where it is asked for by POST, whatever it is [R5-17, R6-3]", () => {
    // A query in GraphQL looks, and is posted because it is long.
    const posted = entries.filter(([id]) => routes[id].method !== "GET" && id !== "admin.graphql");
    const unheard = posted.filter(([, trail]) => trail === null);
    expect(unheard.map(([id]) => id)).to.deep.equal([]);
    const elsewhere = (Object.keys(routes) as RouteId[]).filter((id) => routes[id].port === "admin" && !(id in trails));
    expect(elsewhere).to.deep.equal([]);
  });

  for (const [id, trail] of entries) {
    if (trail === null) {
      it(`${id}: only looked at, no record`, () => {
        const { status, from, to } = called.get(id) as Called;
        expect([status, to - from]).to.deep.equal([200, 0]);
      });
      continue;
    }
    it(`${id}: one ${trail.kind} record that names the caller [R5-17, R6-3]`, () => {
      const { status, about, from, to } = called.get(id) as Called;
      expect(status).to.equal(trail.status ?? 200);
      const left = records.filter(({ seq, kind }) => seq >= from && seq < to && kind === trail.kind);
      expect(left.map(({ tenant }) => tenant)).to.deep.equal(["acme"]);
      expect(left[0]?.detail).to.deep.include(trail.detail(site.principal("adam"), about));
    });
  }
});
