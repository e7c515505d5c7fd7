import { mkdtemp, rm } from "node:fs/promises";
import type { ServerResponse } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect } from "chai";
import { canaryOf, entriesIn, formsOf } from "../../support/canary.ts";
import { filesWith } from "../../support/disk-search.ts";
import { HeldSite, overHttp, type Person } from "../../support/held-site.ts";
import { type Mood, MoodyUpstream } from "../../support/moody-upstream.ts";
import { type Route, type RouteId, routes } from "../../support/route-table.ts";
import { until, WebhookReceiver } from "../../support/webhook-receiver.ts";
import { send, type WireRequest } from "../../support/wire.ts";
import { runGateway } from "../../unit/cli/run.ts";

/** A secret for each way into the loop of an approval; comments and reasons are meant to be read, and hold none. */
const canaries = [
  "argument-name",
  "pending-value",
  "denied-value",
  "approved-value",
  "used-value",
  "failed-value",
  "meta",
  "progress-token",
  "label",
  "answer",
  "tool-error",
  "rpc-error",
  "http-error",
  "nonsense",
  "reviewer",
  "member",
  "broken-json",
  "wrong-key",
  "query",
  "id",
  "header",
  "webhook-path",
  "webhook-answer",
] as const;
type Canary = (typeof canaries)[number];

/** What is not there where nothing was declared, and nothing is backed up. */
const elsewhere: Partial<Readonly<Record<RouteId, number>>> = {
  "admin.backups": 404,
  "admin.manifest": 404,
  "admin.definition": 404,
  "admin.explain": 403,
};
/** In GraphQL. */
const everything = `{
  decisions { id tool target rules label principal task }
  approvals(state: consumed) { items { id reason action { tool target } evaluation { rules } } }
  sessions { items { session taints } }
  evidenceSessions { items { id label principal } }
}`;

const canary = (name: Canary): string => canaryOf(name);
const secretKey = Buffer.from(canaryOf("webhook-secret")).toString("base64");
/** What may turn up nowhere, by name. */
const secrets: readonly (readonly [string, string])[] = [
  ...canaries.map((name) => [name, canary(name)] as const),
  ["webhook-secret", secretKey],
];

/** What the upstream does with the calls that were approved, and with which value they were made. */
const moods: readonly (readonly [value: Canary, mood: Mood])[] = [
  ["used-value", (response, id) => say(response, id, { result: content("answer") })],
  ["failed-value", (response, id) => say(response, id, { result: content("tool-error", true) })],
  ["failed-value", (response, id) => say(response, id, { error: { code: -32000, message: canary("rpc-error") } })],
  ["failed-value", (response) => void response.writeHead(500).end(canary("http-error"))],
  ["failed-value", (response) => void response.writeHead(200).end(`{${canary("nonsense")}`)],
];

function say(response: ServerResponse, id: number | string, body: object): void {
  response.writeHead(200, { "content-type": "application/json" });
  response.end(JSON.stringify({ jsonrpc: "2.0", id, ...body }));
}

function content(name: Canary, isError = false): object {
  return { content: [{ type: "text", text: canary(name) }], isError };
}

for (const storeValues of [true, false]) {
  describe(`secrets on the way through an approval, with store_values: ${storeValues}`, () => {
    let folder: string;
    let upstream: MoodyUpstream;
    let told: WebhookReceiver;
    let refusing: WebhookReceiver;
    let site: HeldSite;
    let session: string;
    let pending: string;
    /** All that was said to whoever may not see private fields, by where. */
    const surfaces = new Map<string, string>();

    before(async () => {
      folder = await mkdtemp(join(tmpdir(), "canary-approval-"));
      upstream = await MoodyUpstream.start();
      told = await WebhookReceiver.start();
      refusing = await WebhookReceiver.start();
      refusing.respond = (response) => void response.writeHead(410).end(canary("webhook-answer"));
      site = makeSite();
      await site.start();
      await goThrough();
      await sendToReviewers();
      const sessions = [...(await site.evidence.sessions())].sort((a, b) => b.records - a.records);
      session = sessions[0]?.id ?? "none";
      await readSurfaces();
    });

    after(async () => {
      await site.stop().catch(() => undefined);
      upstream.stop();
      told.stop();
      refusing.stop();
      await rm(folder, { recursive: true });
    });

    function makeSite(): HeldSite {
      const webhooks = [told, refusing].map(
        ({ url }, at) =>
          `{ name: hook-${at}, tenant: acme, url: "${url}/${canary("webhook-path")}", secrets_env: [SECRET] }`,
      );
      return new HeldSite({
        upstreams: [overHttp("moody", upstream.url)],
        approvals: `webhooks: [${webhooks.join(", ")}]`,
        more: `evidence: { store_values: ${storeValues}, store_labels: false }\nlog: { level: debug }`,
        env: { SECRET: `whsec_${secretKey}` },
        folder,
      });
    }

    /** One call that waits, one that was denied, one that was approved, and some that ran. */
    async function goThrough(): Promise<void> {
      const hold = (value: Canary): Promise<string> => site.hold("echo", argumentsOf(value), "agent", canary("label"));
      pending = await hold("pending-value");
      const denied = await hold("denied-value");
      expect((await site.review(denied, "deny", "rita", { comment: "no" })).status).to.equal(200);
      await site.approve(await hold("approved-value"));
      for (const [turn, [value, mood]] of moods.entries()) {
        upstream.mood = mood;
        const args = { ...argumentsOf(value), turn };
        await site.holdAndApprove("echo", args, "agent", canary("label"));
        await site.call("echo", args, "agent", canary("label"));
        expect(upstream.calls.at(-1)?.arguments).to.deep.equal(args);
      }
      const _meta = { "com.example/secret": canary("meta"), progressToken: canary("progress-token") };
      await site.agent().send("tools/call", { name: "echo", arguments: argumentsOf("pending-value"), _meta });
    }

    function argumentsOf(value: Canary): Record<string, string> {
      return { path: `/${canary(value)}`, [canary("argument-name")]: canary(value) };
    }

    /** What somebody may send to the admin port by mistake. */
    async function sendToReviewers(): Promise<void> {
      const path = `/admin/v1/approvals/${pending}/approve`;
      const agentsOwn = { reviewer: canary("reviewer") };
      expect((await site.review(pending, "approve", "agent", agentsOwn)).status).to.equal(403);
      expect((await site.review(pending, "approve", "rita", { [canary("member")]: canary("member") })).status).to.equal(
        400,
      );
      const mistakes: readonly WireRequest[] = [
        { method: "POST", target: path, body: `{"${canary("broken-json")}":` },
        { method: "POST", target: path, body: `{"scope":"${canary("member")}"}` },
        { method: "POST", target: `/admin/v1/approvals/${canary("id")}/deny`, body: "{}" },
        { target: `/admin/v1/approvals/${canary("id")}` },
        { target: `/admin/v1/approvals?cursor=${canary("query")}` },
        { target: `/admin/v1/approvals?state=${canary("query")}` },
        { target: `/admin/v1/approvals?${canary("query")}=1` },
      ];
      for (const request of mistakes) expect((await ask("rita", request)).status).to.be.oneOf([400, 404]);
      const headers = [["x-api-key", canary("wrong-key")]] as const;
      expect((await send(site.gateway.adminUrl, { target: "/admin/v1/approvals", headers })).status).to.equal(401);
    }

    function ask(person: Person, request: WireRequest): ReturnType<typeof send> {
      return send(site.gateway.adminUrl, {
        headers: [
          ["x-api-key", site.key(person)],
          ["content-type", "application/json"],
          ["cookie", `s=${canary("header")}`],
          ["x-custom", canary("header")],
        ],
        ...request,
      });
    }

    async function readSurfaces(): Promise<void> {
      await until(async () => (await dead()).includes(pending), "a dead letter");
      for (const [id, { port, method, path }] of Object.entries(routes) as [RouteId, Route][]) {
        if (port !== "admin" || method !== "GET") continue;
        for (const target of targetsOf(path)) {
          const person = id === "admin.dead_letters" || id === "admin.backups" ? "adam" : "vera";
          const { status, body } = await ask(person, { target });
          expect(status, target).to.equal(elsewhere[id] ?? 200);
          surfaces.set(`GET ${target.replace(session, "").replace(pending, "")}`, body);
        }
      }
      const asked: WireRequest = {
        headers: [
          ["x-api-key", site.key("vera")],
          ["accept", "application/json"],
        ],
        target: "/",
      };
      surfaces.set("dashboard", (await send(site.gateway.metricsUrl, asked)).body);
      surfaces.set("scrape", (await send(site.gateway.metricsUrl, { target: "/metrics" })).body);
      const environment = { GATEWAY_API_KEY: site.key("rita"), GATEWAY_ADMIN_URL: site.gateway.adminUrl };
      for (const command of ["approvals list", "approvals history", "webhooks dead-letters", "sessions killed"]) {
        for (const form of [[], ["--json"]]) {
          const { code, stdout, stderr } = await runGateway([...command.split(" "), ...form], environment);
          expect(code, stderr).to.equal(0);
          surfaces.set([command, ...form].join(" "), stdout + stderr);
        }
      }
      const delivered = [...told.deliveries, ...refusing.deliveries];
      surfaces.set("webhooks", JSON.stringify(delivered.map(({ headers, body }) => [headers, body])));
    }

    function targetsOf(path: string): readonly string[] {
      if (path.endsWith("/report")) {
        return ["json", "md", "html"].map((format) => `${path.replace(":id", session)}?format=${format}`);
      }
      if (path.endsWith("/graphql")) return [`${path}?query=${encodeURIComponent(everything)}`];
      const target = path.replace(":id", path.includes("/approvals/") ? pending : session);
      return path.endsWith("/approvals") ? [target, `${target}?state=approved`] : [target];
    }

    async function dead(): Promise<string> {
      return (await ask("adam", { target: "/admin/v1/webhooks/dead-letters" })).body;
    }

    it("reach the reviewer who has to decide, and the bundle of who may see them [S66]", async () => {
      const { body } = await ask("rita", { target: `/admin/v1/approvals/${pending}` });
      expect(body).to.include(canary("pending-value")).and.include(canary("argument-name"));
      const bundle = await ask("rita", { target: `/admin/v1/evidence/sessions/${session}/export` });
      expect(bundle.body.includes(canary("used-value"))).to.equal(storeValues);
    });

    it("are not what the surfaces are empty for [S66]", () => {
      const named = (what: string): string => surfaces.get(what) ?? "";
      expect(named("GET /admin/v1/approvals")).to.include(pending);
      expect(named("GET /admin/v1/approvals/history")).to.include('"consumed"').and.include('"denied"');
      expect(named("GET /admin/v1/evidence/sessions//export")).to.include('"state":"consumed"');
      expect(named("approvals list")).to.include(pending);
      expect(named("webhooks dead-letters")).to.include("  refused         1  status 410");
      expect(named("webhooks")).to.include("approval.denied");
      expect(surfaces.size).to.be.greaterThan(25);
    });

    for (const [name, secret] of secrets) {
      it(`the ${name}: in no answer, notice, list, metric or bundle without disclosure [S66]`, () => {
        for (const [where, text] of surfaces) {
          for (const form of formsOf(secret)) expect(text.includes(form), where).to.equal(false);
        }
      });
    }

    it("are in no log line, no file of the data folder and no entry of the store [S66]", async () => {
      const { gateway } = site;
      await site.stop();
      const said = gateway.stdout() + gateway.stderr();
      expect(said).to.include("request_refused");
      const entries = await entriesIn(join(folder, "data"));
      expect(entries).to.include(`acme/approval/${pending}`).and.include('\\"event\\":\\"denied\\"');
      for (const [name, secret] of secrets) {
        for (const form of formsOf(secret)) {
          expect(await filesWith(join(folder, "data"), form), name).to.deep.equal([]);
          expect(entries.includes(form), name).to.equal(false);
          expect(said.includes(form), name).to.equal(false);
        }
      }
    });
  });
}
