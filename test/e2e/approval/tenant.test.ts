import { expect } from "chai";
import type { Approval } from "../../../core/action/approval.ts";
import { HeldSite, heldId, overHttp, type Person } from "../../support/held-site.ts";
import { webhookSecret } from "../../support/notify-world.ts";
import { type Recorder, startRecorder } from "../../support/recorder.ts";
import { type Route, type RouteId, routes } from "../../support/route-table.ts";
import { answer, until, WebhookReceiver } from "../../support/webhook-receiver.ts";
import { send, type WireResponse } from "../../support/wire.ts";

const states = ["pending", "approved", "denied", "expired", "consumed"];
const reads = (Object.entries(routes) as [RouteId, Route][]).filter(
  ([, { port, method }]) => port === "admin" && method === "GET",
);

/** `adam` is an admin of one tenant, `foreign` of another; each has approvals in every state that people bring about. */
describe("approvals of two tenants", () => {
  let upstream: Recorder;
  let site: HeldSite;
  const receivers = {} as Record<"acme" | "other", WebhookReceiver>;
  /** What must not reach the other tenant: ids of approvals, sessions and principals, and fingerprints. */
  const traces = {} as Record<"adam" | "foreign", readonly string[]>;
  const approvals = {} as Record<"adam" | "foreign", readonly Approval[]>;

  before(async () => {
    upstream = await startRecorder();
    for (const tenant of ["acme", "other"] as const) {
      receivers[tenant] = await WebhookReceiver.start();
      receivers[tenant].respond = (response) => answer(response, 410);
    }
    const webhooks = Object.entries(receivers).map(
      ([tenant, { url }]) => `{ name: ${tenant}, tenant: ${tenant}, url: "${url}", secrets_env: [SECRET] }`,
    );
    site = new HeldSite({
      upstreams: [overHttp("recorder", upstream.url)],
      approvals: `allow_self_review: true, allow_break_glass: true, webhooks: [${webhooks.join(", ")}]`,
      env: { SECRET: webhookSecret },
    });
    await site.start();
    for (const person of ["adam", "foreign"] as const) {
      approvals[person] = await makeApprovals(person);
      traces[person] = [
        ...approvals[person].flatMap(({ id, fingerprint, session }) => [id, fingerprint, session.id]),
        site.principal(person),
      ];
      await until(async () => (await deadLetters(person)).length > 0, "a dead letter");
    }
  });

  after(async () => {
    await site.stop();
    await upstream.stop();
    for (const receiver of Object.values(receivers)) receiver.stop();
  });

  async function makeApprovals(person: Person): Promise<readonly Approval[]> {
    const hold = async (to: string): Promise<string> => heldId(await site.call("echo", { to }, person));
    const ids: string[] = [];
    for (const to of ["pending", "approved", "denied", "used", "glass"]) ids.push(await hold(to));
    const [, approved, denied, used, glass] = ids as [string, string, string, string, string];
    const reviews = [
      await site.review(approved, "approve", person),
      await site.review(denied, "deny", person),
      await site.review(used, "approve", person),
      await site.review(glass, "approve", person, { break_glass: "nobody else was awake" }),
    ];
    expect(reviews.map(({ status }) => status)).to.deep.equal([200, 200, 200, 200]);
    for (const to of ["used", "glass"]) await site.call("echo", { to }, person);
    const views = await Promise.all(ids.map((id) => ask(person, `/admin/v1/approvals/${id}`)));
    return views.map(({ body }) => (JSON.parse(body) as { approval: Approval }).approval);
  }

  function ask(person: Person, target: string): Promise<WireResponse> {
    return send(site.gateway.adminUrl, { target, headers: [["x-api-key", site.key(person)]] });
  }

  /** The approvals that a person's dead letters tell of. */
  async function deadLetters(person: Person): Promise<readonly string[]> {
    const { body } = await ask(person, "/admin/v1/webhooks/dead-letters");
    return (JSON.parse(body) as { items: { data: { id: string } }[] }).items.map(({ data }) => data.id);
  }

  /** All that a person is answered on the admin port, with every id and every filter that there is. */
  async function readAll(person: Person, [id, { path }]: [RouteId, Route]): Promise<string> {
    const ids = [...traces.adam, ...traces.foreign].filter((each) => /^(?:apr_|session-)/.test(each));
    const paths = path.includes(":id") ? ids.map((each) => path.replace(":id", each)) : [path];
    const queries = id.startsWith("admin.approval") && !path.includes(":id") ? states.map((s) => `?state=${s}`) : [];
    const cursors = path.includes(":id") ? [] : ids.map((each) => `?cursor=${each}`);
    let text = "";
    for (const target of [...paths, ...queries.map((query) => path + query), ...cursors.map((each) => path + each)]) {
      text += (await ask(person, target)).body;
    }
    return text;
  }

  for (const read of reads) {
    it(`${read[0]} tells neither of the other's [R2.1-2]`, async () => {
      for (const [person, other] of [
        ["adam", "foreign"],
        ["foreign", "adam"],
      ] as const) {
        const text = await readAll(person, read);
        expect(traces[other].filter((trace) => text.includes(trace))).to.deep.equal([]);
      }
    });
  }

  it("are whole to their own tenant: lists, history, break-glass [R2.1-2]", async () => {
    for (const person of ["adam", "foreign"] as const) {
      const told = async (path: string): Promise<readonly string[]> => {
        const { body } = await ask(person, `/admin/v1/${path}`);
        return (JSON.parse(body) as { items: { id: string }[] }).items.map(({ id }) => id);
      };
      const [pending, approved, denied, used, glass] = approvals[person].map(({ id }) => id);
      expect(await told("approvals")).to.deep.equal([pending]);
      expect(await told("approvals?state=approved")).to.deep.equal([approved]);
      expect(await told("approvals/history?state=denied")).to.deep.equal([denied]);
      expect(await told("approvals/history?state=consumed")).to.have.members([used, glass]);
      expect(await told("break-glass")).to.deep.equal([glass]);
    }
  });

  it("are told to the webhooks of their own tenant alone, and so are their dead letters [R2.1-2]", async () => {
    for (const [tenant, person] of [
      ["acme", "adam"],
      ["other", "foreign"],
    ] as const) {
      const deliveries = await receivers[tenant].arrived(9); // five were held, four were answered
      const told = new Set(deliveries.map(({ notice }) => notice.data.id));
      const own = approvals[person].map(({ id }) => id);
      expect([...told]).to.have.members(own);
      await until(async () => (await deadLetters(person)).length === 9, "nine dead letters");
      expect([...new Set(await deadLetters(person))]).to.have.members(own);
    }
  });

  it("are not found by who reviews for the other, or accounts for it [R2.1-2]", async () => {
    const [pending, , , , glass] = approvals.adam.map(({ id }) => id) as [string, string, string, string, string];
    const none = `apr_${"0".repeat(32)}`;
    for (const path of ["approvals/:id/approve", "approvals/:id/deny", "break-glass/:id/close"]) {
      const answers: string[] = [];
      for (const id of [pending, glass, none]) {
        const { status, body } = await send(site.gateway.adminUrl, {
          method: "POST",
          target: `/admin/v1/${path.replace(":id", id)}`,
          headers: [
            ["x-api-key", site.key("foreign")],
            ["content-type", "application/json"],
          ],
          body: path.endsWith("close") ? '{"post_mortem":"nothing of ours, and yet"}' : "{}",
        });
        answers.push(`${status} ${(JSON.parse(body) as { detail: string }).detail}`);
      }
      expect(new Set(answers)).to.deep.equal(new Set(["404 not found: no such approval"]));
    }
    expect((await site.show(pending)).state).to.equal("pending");
  });
});
