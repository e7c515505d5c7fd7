import { mkdtemp, rename, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect } from "chai";
import type { Answer } from "../../support/agent.ts";
import type { Message } from "../../support/event-stream.ts";
import { HeldSite, overHttp, reviewEverything, textOf, toldOf } from "../../support/held-site.ts";
import { MoodyUpstream } from "../../support/moody-upstream.ts";
import { SseAgent } from "../../support/sse-agent.ts";
import { until } from "../../support/webhook-receiver.ts";

const echo = { name: "echo", description: "Answers.", inputSchema: { type: "object" } };

/** The upstream's own log is the witness: nothing here may reach it but what a test says. */
describe("an approval that holds no more", () => {
  let folder: string;
  let upstream: MoodyUpstream;
  let site: HeldSite;

  // One gateway for all; each test asks for calls that no other test asks for.
  before(async () => {
    folder = await mkdtemp(join(tmpdir(), "approval-void-"));
    upstream = await MoodyUpstream.start();
    site = new HeldSite({ upstreams: [overHttp("moody", upstream.url, ", definitions: { pin: false }")], folder });
    await site.start();
  });

  beforeEach(() => upstream.calls.splice(0));

  afterEach(() => site.hangUp());

  after(async () => {
    await site.stop();
    upstream.stop();
    await rm(folder, { recursive: true });
  });

  for (const [what, swapped] of [
    ["description", { ...echo, description: "Answers, and sends a copy elsewhere." }],
    ["schema", { ...echo, inputSchema: { type: "object", properties: { bcc: { type: "string" } } } }],
    ["annotations", { ...echo, annotations: { readOnlyHint: false } }],
  ] as const) {
    it(`because the tool's ${what} is another does not let the call pass [S55]`, async () => {
      const id = await site.holdAndApprove("echo", { to: what });
      upstream.publish([swapped]);
      await until(async () => (await describedAs()) === JSON.stringify(swapped), "the other definition");
      expectVoid(await site.call("echo", { to: what }), id, "tool_changed");
      upstream.publish([echo]);
      await until(async () => (await describedAs()) === JSON.stringify(echo), "the first definition");
      expectHeld(await site.call("echo", { to: what }));
      expect(await site.show(id)).to.include({ state: "expired", reason: "tool_changed" });
      expect(upstream.calls).to.deep.equal([]);
    });
  }

  for (const [what, swapped] of [
    ["another description", [{ ...echo, description: "Answers, and sends a copy elsewhere." }]],
    ["another schema", [{ ...echo, inputSchema: { type: "object", properties: { bcc: { type: "string" } } } }]],
  ] as const) {
    it(`because its upstream gave the tool ${what}, and did not say so, does not let the call pass`, async () => {
      const to = `silently ${what}`;
      const id = await site.holdAndApprove("echo", { to });
      upstream.swap(swapped);
      expectVoid(await site.call("echo", { to }), id, "tool_changed");
      expect(await site.show(id)).to.include({ state: "expired", reason: "tool_changed" });
      upstream.publish([echo]);
      await until(async () => (await describedAs()) === JSON.stringify(echo), "the first definition");
      expect(upstream.calls).to.deep.equal([]);
    });
  }

  it("because its upstream dropped the tool, and did not say so, does not let the call pass", async () => {
    const id = await site.holdAndApprove("echo", { to: "nobody" });
    upstream.swap([{ ...echo, name: "other" }]);
    expect((await site.call("echo", { to: "nobody" })).error?.message).to.contain("unknown tool");
    expect(await site.show(id)).to.include({ state: "expired", reason: "tool_changed" });
    upstream.publish([echo]);
    await until(async () => (await describedAs()) === JSON.stringify(echo), "the first definition");
    expect(upstream.calls).to.deep.equal([]);
  });

  it("because a pack is another does not let the call pass", async () => {
    const id = await site.holdAndApprove("echo", { to: "pack" });
    const said = site.gateway.stderr().length;
    await replace("packs/open/rules/review.yaml", reviewEverything.replace("risk: 50", "risk: 51"));
    await until(() => site.gateway.stderr().slice(said).includes("configuration_reloaded"), "a reload");
    expectVoid(await site.call("echo", { to: "pack" }), id, "policy_changed");
    expect(upstream.calls).to.deep.equal([]);
  });

  it("because the key was rotated is nobody's: neither the old key nor the new one passes [S56] [R5-15] [R2.1-10]", async () => {
    const id = await site.holdAndApprove("echo", { to: "rotated" });
    const old = site.agent();
    site.rotate("agent");
    await replace("gateway.yaml", site.config());
    await until(async () => (await old.call("echo", { to: "nobody" })).status === 401, "the end of the old key");
    expect((await old.call("echo", { to: "rotated" })).status).to.equal(401);
    const { approval, former_approval: former } = toldOf(await site.call("echo", { to: "rotated" }));
    expect([approval?.state, former]).to.deep.equal(["pending", undefined]);
    expect(approval?.id).not.to.equal(id);
    expect(upstream.calls).to.deep.equal([]);
  });

  it("is not that of another label, another key of the tenant, or of no label [S56] [R2.1-12] [R2.1-13]", async () => {
    const id = await site.holdAndApprove("echo", { to: "label" }, "agent", "one");
    for (const answer of [
      await site.call("echo", { to: "label" }, "agent", "two"),
      await site.call("echo", { to: "label" }, "agent"),
      await site.call("echo", { to: "label" }, "other", "one"),
      await site.call("echo", { to: "label" }, "foreign", "one"),
    ]) {
      expectHeld(answer);
      expect(toldOf(answer).approval?.id).not.to.equal(id);
    }
    expect(upstream.calls).to.deep.equal([]);
    expect((await site.call("echo", { to: "label" }, "agent", "one")).result?.isError).to.equal(undefined);
    expect(upstream.calls).to.have.length(1);
  });

  it("is that of every client with the same key and label, which share it [R5-14]", async () => {
    const id = await site.holdAndApprove("echo", { to: "us" }, "agent", "shared");
    const [one, other] = [site.agent("agent", "shared"), site.agent("agent", "shared")];
    expect((await one.call("echo", { to: "us" })).result?.isError).to.equal(undefined);
    expect(toldOf(await other.call("echo", { to: "us" })).former_approval?.id).to.equal(id);
    expect(upstream.calls).to.have.length(1);
  });

  it("because its connection was closed does not pass on the next one [S56] [R3.2-4] [R3.2-5]", async () => {
    const first = await SseAgent.open(site.gateway.url, site.key("agent"));
    const id = idIn(await first.echo({ to: "closed" }));
    await site.approve(id);
    first.hangUp();
    await until(async () => (await site.show(id)).state === "expired", "the end of the approval");
    expect(await site.show(id)).to.include({ reason: "connection_closed" });
    const second = await SseAgent.open(site.gateway.url, site.key("agent"));
    const again = idIn(await second.echo({ to: "closed" }));
    expect(again).not.to.equal(id);
    expect(upstream.calls).to.deep.equal([]);
    await site.approve(again);
    expect((await second.echo({ to: "closed" })).result).not.to.have.property("isError");
    expect(upstream.calls).to.have.length(1);
    second.hangUp();
  });

  it("does not go from HTTP to SSE, nor back, nor to another live connection [S56] [R3.2-6]", async () => {
    const sse = await SseAgent.open(site.gateway.url, site.key("agent"));
    const neighbour = await SseAgent.open(site.gateway.url, site.key("agent"));
    const overHttpId = await site.holdAndApprove("echo", { to: "http" });
    const overSseId = idIn(await sse.echo({ to: "sse" }));
    await site.approve(overSseId);
    expect(idIn(await sse.echo({ to: "http" }))).not.to.equal(overHttpId);
    expect(idIn(await neighbour.echo({ to: "sse" }))).not.to.equal(overSseId);
    expectHeld(await site.call("echo", { to: "sse" }));
    expect(upstream.calls).to.deep.equal([]);
    expect((await sse.echo({ to: "sse" })).result).not.to.have.property("isError");
    expect((await site.call("echo", { to: "http" })).result?.isError).to.equal(undefined);
    expect(upstream.calls.map((call) => call.arguments)).to.deep.equal([{ to: "sse" }, { to: "http" }]);
    for (const agent of [sse, neighbour]) agent.hangUp();
  });

  it("because nobody used it in time does not pass; one that nobody reviewed in time cannot be approved [S54] [R3.2-7] [R8-5]", async () => {
    const quick = new HeldSite({ upstreams: site.options.upstreams, approvals: "review_seconds: 4, use_seconds: 1" });
    await quick.start();
    try {
      const unused = await quick.holdAndApprove("echo", { to: "unused" });
      const pending = await quick.hold("echo", { to: "pending" });
      await until(async () => (await quick.show(pending)).state === "expired", "the end of the pending one");
      expect((await quick.review(pending, "approve")).status).to.equal(409);
      expectVoid(await quick.call("echo", { to: "unused" }), unused, "not_used_in_time");
      expect(await quick.show(pending)).to.include({ reason: "not_reviewed_in_time" });
      expect(await quick.show(unused)).to.include({ state: "expired", reason: "not_used_in_time" });
    } finally {
      await quick.stop();
    }
    expect(upstream.calls).to.deep.equal([]);
  });

  it("because a reviewer denied it does not pass, and says so", async () => {
    const id = await site.hold("echo", { to: "denied" });
    expect((await site.review(id, "deny", "rita", { comment: "not this one" })).status).to.equal(200);
    const denied = await site.call("echo", { to: "denied" });
    expect(toldOf(denied)).to.deep.include({ code: "APPROVAL_DENIED", executed: false });
    expect(textOf(denied)).to.contain(`A reviewer denied approval ${id}: "not this one". Do not repeat this call.`);
    expect((await site.review(id, "approve")).status).to.equal(409);
    expect(upstream.calls).to.deep.equal([]);
  });

  it("because nobody who may gave it never holds: a viewer, another tenant's admin, who asked, nobody [R3.2-1] [R3.2-2] [R5-10] [R5-11] [R7-5] [R7-6]", async () => {
    const id = await site.hold("echo", { to: "unentitled" });
    for (const [person, status, code] of [
      ["vera", 403, "ROLE_FORBIDDEN"],
      ["foreign", 404, "NOT_FOUND"],
      ["agent", 403, "APPROVAL_SELF_REVIEW"],
    ] as const) {
      for (const body of [{}, { reviewer: "rita" }]) {
        const refused = await site.review(id, "approve", person, body);
        expect([refused.status, refused.body.code], person).to.deep.equal([status, code]);
      }
      expect((await site.call("echo", { to: "unentitled" })).result?.isError, person).to.equal(true);
    }
    expect((await site.show(id)).state).to.equal("pending");
    expect(upstream.calls).to.deep.equal([]);
  });

  it("after one use is none: the same call is held anew [R7-7] [R2.2-5]", async () => {
    const id = await site.holdAndApprove("echo", { to: "once" });
    expect((await site.call("echo", { to: "once" })).result?.isError).to.equal(undefined);
    expect(toldOf(await site.call("echo", { to: "once" }))).to.deep.include({
      executed: false,
      former_approval: { id, state: "consumed", reason: null },
    });
    expect(toldOf(await site.call("echo", { to: "you" })).former_approval).to.equal(undefined);
    expect(upstream.calls).to.have.length(1);
  });

  /** In one step, as a deployment would. */
  async function replace(path: string, text: string): Promise<void> {
    await writeFile(join(folder, "next"), text);
    await rename(join(folder, "next"), join(folder, path));
  }

  /** The definition of the tool as agents see it. */
  async function describedAs(): Promise<string> {
    const { result } = await site.agent().send("tools/list");
    return JSON.stringify((result as { tools?: readonly object[] } | undefined)?.tools?.[0]);
  }
});

function expectVoid(answer: Answer, id: string, reason: string): void {
  expectHeld(answer);
  const told = toldOf(answer);
  expect(told.former_approval).to.deep.equal({ id, state: "expired", reason });
  expect(told.approval?.id).not.to.equal(id);
  expect(textOf(answer)).to.contain(
    `Nothing was executed. Approval ${id} is no longer valid (${reason}). Approval apr_`,
  );
}

function expectHeld(answer: Answer): void {
  expect(toldOf(answer)).to.deep.include({ code: "REVIEW_REQUIRED", executed: false });
  expect(toldOf(answer).approval?.state).to.equal("pending");
}

function idIn(message: Message): string {
  const [, id] = /Approval (apr_[0-9a-f]{32}) is pending/.exec(JSON.stringify(message)) ?? [];
  if (id === undefined) throw new Error(`expected a held call, got ${JSON.stringify(message)}`);
  return id;
}
