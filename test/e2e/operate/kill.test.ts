import { setTimeout as sleep } from "node:timers/promises";
import { expect } from "chai";
import type { EvidenceRecord } from "../../../core/evidence/record/record.ts";
import { Agent, type Answer } from "../../support/agent.ts";
import { EvidenceReader } from "../../support/evidence-reader.ts";
import { separateSession } from "../../support/own-task.ts";
import { exportVerified } from "../../support/verified-bundle.ts";
import { send, type WireResponse } from "../../support/wire.ts";
import { runGateway } from "../../unit/cli/run.ts";
import { effectsOf, type KeyHolder, keys, openWorld, type World } from "../wire/world.ts";

const agents = 100;

describe("stopping a session", () => {
  let world: World;
  let reader: EvidenceReader;

  before(async () => {
    world = await openWorld();
    reader = new EvidenceReader(world.gateway.adminUrl, keys.operator);
  });

  after(() => world.stop());

  /** A session of the operator with a task of its own that has called once, and its id. */
  async function begin(label: string): Promise<{ readonly agent: Agent; readonly id: string }> {
    await separateSession(world.gateway.adminUrl, keys.operator, "operator", label);
    const agent = new Agent(world.gateway.url, keys.operator, label);
    expect(isBlocked(await agent.call("echo"))).to.equal(false);
    const id = (await reader.sessions()).find((session) => session.label === label)?.id ?? "";
    return { agent, id };
  }

  function order(holder: KeyHolder, id: string, what: "kill" | "release", body?: object): Promise<WireResponse> {
    return send(world.gateway.adminUrl, {
      method: "POST",
      target: `/admin/v1/sessions/${id}/${what}`,
      headers: [
        ["x-api-key", keys[holder]],
        ["content-type", "application/json"],
      ],
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
  }

  async function killed(holder: KeyHolder = "operator", query = ""): Promise<KilledPage> {
    const target = `/admin/v1/sessions/killed${query}`;
    const { body } = await send(world.gateway.adminUrl, { target, headers: [["x-api-key", keys[holder]]] });
    return JSON.parse(body) as KilledPage;
  }

  it("blocks all that it asks for, until an operator releases it, and says who can [S57]", async () => {
    const { agent, id } = await begin("stopped");
    const other = await begin("other");
    expect((await order("operator", id, "kill", { note: "odd" })).status).to.equal(200);
    const refused = await effectsOf(world, async () => {
      const answer = await agent.call("echo");
      expect(textOf(answer)).to.match(
        new RegExp(
          `session \`${id}\` is stopped until an operator or admin .* \\(rule session\\.killed\\)\\. Nothing was`,
        ),
      );
      expect((await agent.send("tools/list")).error).to.deep.include({ code: 1403 });
    });
    expect(refused).to.deep.equal({ calls: 0, records: 2 });
    expect(isBlocked(await other.agent.call("echo"))).to.equal(false);
    const { items } = await killed();
    expect(items.map(({ session, reason, note }) => [session, reason, note])).to.deep.equal([[id, "operator", "odd"]]);
    expect((await order("admin", id, "release", { reason: "all is well" })).status).to.equal(200);
    expect(isBlocked(await agent.call("echo"))).to.equal(false);
    expect((await killed()).items).to.deep.equal([]);
    expect(await reader.verify()).to.include({ ok: true });
  });

  it("goes on record with who did it and why, for verifiers to hold the session to", async () => {
    const { agent, id } = await begin("recorded");
    await order("operator", id, "kill");
    await agent.call("echo");
    await order("operator", id, "release", { reason: "seen to" });
    const records = await exportVerified(world.gateway.adminUrl, keys.operator, id);
    const events = records.flatMap((record) => (record.kind === "session" ? [record.detail] : []));
    expect(events.map(({ event, session, reason }) => [event, session, reason])).to.deep.equal([
      ["killed", id, "operator"],
      ["released", id, "seen to"],
    ]);
    expect(events[0]?.by)
      .to.match(/^principal-v1-/)
      .and.to.equal(events[1]?.by);
    const refused = records.find(({ kind, seq }) => kind === "decision" && seq > seqOf(records, "killed"));
    expect(refused).to.have.property("effect", "not_dispatched");
    expect(refused).to.have.nested.property("evaluation.rules[0]", "session.killed");
    expect(refused).to.have.nested.property("evaluation.policies[0].kind", "session");
  });

  it("is for operators and admins of the tenant, and changes nothing for anyone else [S57]", async () => {
    const { agent, id } = await begin("guarded");
    expect((await order("viewer", id, "kill")).status).to.equal(403);
    expect((await order("foreign", id, "kill")).status).to.equal(404);
    expect((await order("operator", "session-v1-none", "kill")).status).to.equal(404);
    expect(isBlocked(await agent.call("echo"))).to.equal(false);
    await order("operator", id, "kill");
    expect((await order("viewer", id, "release", { reason: "x" })).status).to.equal(403);
    expect((await order("foreign", id, "release", { reason: "x" })).status).to.equal(404);
    expect((await killed("foreign")).items).to.deep.equal([]);
    const refused = await effectsOf(world, () => agent.call("echo"));
    expect(refused).to.deep.equal({ calls: 0, records: 1 });
  });

  it("outlasts a reload of the packs", async () => {
    const { agent, id } = await begin("reloaded");
    await order("operator", id, "kill");
    const said = world.gateway.stderr().length;
    world.gateway.process.kill("SIGHUP");
    await until(async () => world.gateway.stderr().slice(said).includes("reloaded"));
    expect(textOf(await agent.call("echo"))).to.include("(rule session.killed)");
  });

  it("says 409 and the state where there is nothing to do, and 400 where the order is not understood", async () => {
    const { id } = await begin("ordered");
    const early = await order("operator", id, "release", { reason: "x" });
    expect(early.status).to.equal(409);
    expect(JSON.parse(early.body)).to.deep.include({ code: "SESSION_STATE", data: { state: "active" } });
    await order("operator", id, "kill");
    const again = await order("operator", id, "kill");
    expect(again.status).to.equal(409);
    expect(JSON.parse(again.body)).to.deep.include({ code: "SESSION_STATE", data: { state: "killed" } });
    for (const body of [
      undefined,
      {},
      { reason: "" },
      { reason: 1 },
      { reason: "x", more: 1 },
      { reason: "x".repeat(1_025) },
    ]) {
      expect((await order("operator", id, "release", body)).status, JSON.stringify(body)).to.equal(400);
    }
    expect((await killed()).items.some(({ session }) => session === id)).to.equal(true);
  });

  it("lists page by page", async () => {
    const sessions: Awaited<ReturnType<typeof begin>>[] = [];
    for (const label of ["page-1", "page-2", "page-3"]) sessions.push(await begin(label));
    for (const { id } of sessions) await order("operator", id, "kill");
    const found: string[] = [];
    for (let cursor: string | null = ""; cursor !== null; ) {
      const page: KilledPage = await killed("viewer", `?limit=1${cursor === "" ? "" : `&cursor=${cursor}`}`);
      expect(page.items.length).to.equal(1);
      found.push(...page.items.map(({ session }) => session));
      cursor = page.next;
    }
    expect(found).to.include.members(sessions.map(({ id }) => id));
    expect(found).to.deep.equal([...new Set(found)].toSorted());
  });

  it("is done by the command line too", async () => {
    const { id } = await begin("typed");
    const type = (...args: string[]) =>
      runGateway(["sessions", ...args, "--admin", world.gateway.adminUrl], { GATEWAY_API_KEY: keys.operator });
    expect(await type("kill", id, "--note", "odd")).to.include({ code: 0, stderr: `gateway: stopped ${id}\n` });
    const listed = (await type("killed")).stdout.split("\n").find((line) => line.startsWith(id));
    expect(listed).to.match(/^session-v1-[0-9a-f]{64} {2}\S+Z {2}operator {2}principal-v1-[0-9a-f]{64} {2}odd$/);
    expect(await type("release", id, "--reason", "seen to")).to.include({
      code: 0,
      stderr: `gateway: released ${id}\n`,
    });
    expect((await type("killed", "--json")).stdout).to.not.include(id);
    expect((await type("release", id, "--reason", "again")).stderr).to.include("the kill switch is in another state");
  });

  it("cancels upstream what it has in flight", async () => {
    const { agent, id } = await begin("waiting");
    const call = agent.call("echo", { mark: "in flight", wait_ms: 60_000 });
    while (!(await world.upstream.calls()).some(({ body }) => body.includes("in flight"))) await sleep(10);
    await order("operator", id, "kill");
    expect((await call).error).to.deep.include({
      code: 1403,
      message: `stopped by the kill switch: session \`${id}\` is stopped until an operator or admin of its tenant releases it`,
    });
    await until(async () =>
      (await world.upstream.requests()).some(({ body }) => body.includes("notifications/cancelled")),
    );
    const last = (await reader.records(id)).at(-1);
    expect([last?.effect, last?.reason]).to.deep.equal(["unknown", "SESSION_KILLED"]);
  });

  it("lets nothing be dispatched behind it, however many actions race with it [S57]", async () => {
    const { id } = await begin("raced");
    const raced = Array.from({ length: agents }, () => new Agent(world.gateway.url, keys.operator, "raced"));
    let isOver = false;
    let [answered, refused] = [0, 0];
    const calling = raced.map(async (agent, index) => {
      const blocked: boolean[] = [];
      for (let turn = 0; !isOver; turn++) {
        const was = isBlocked(await agent.call("echo", { mark: `${index}:${turn}` }));
        blocked.push(was);
        if (was) refused++;
        else answered++;
      }
      return blocked;
    });
    while (answered <= agents) await sleep(10);
    expect((await order("operator", id, "kill")).status).to.equal(200);
    const calls = (await world.upstream.calls()).length;
    while (refused <= agents) await sleep(10);
    isOver = true;
    const answers = (await Promise.all(calling)).flat();
    expect((await world.upstream.calls()).length).to.equal(calls);
    const records = await exportVerified(world.gateway.adminUrl, keys.operator, id);
    const dispatched = records.filter((record) => "effect" in record && record.effect === "dispatched");
    const at = seqOf(records, "killed");
    expect(dispatched.length).to.be.above(agents);
    expect(dispatched.filter(({ seq }) => seq > at)).to.deep.equal([]);
    expect(records.filter(({ kind, seq }) => kind === "decision" && seq > at).length).to.be.above(agents);
    expect(answers.filter((blocked) => blocked).length).to.be.above(agents);
    const sent = (await world.upstream.calls()).filter(({ body }) => /"mark":"\d+:\d+"/.test(body));
    expect(sent.length).to.be.at.most(dispatched.length);
    await Promise.all(raced.map((agent) => agent.hangUp()));
  });

  it("comes by itself when 100 actions at once ask for review: no sixth waits, and the list still pages [R3.2-11, S57]", async () => {
    const reviewed = await openWorld("", "", "policy: { default_decision: review }");
    try {
      const flood = Array.from({ length: agents }, () => new Agent(reviewed.gateway.url, keys.operator, "flood"));
      const first = flood[0] as Agent;
      const early = [await first.call("echo", { early: 1 }), await first.call("echo", { early: 2 })];
      const late = await Promise.all(flood.map((agent, index) => agent.call("echo", { index })));
      const said = [...early, ...late].map((answer) => textOf(answer).split(" ")[0]);
      const held = said.filter((word) => word === "Held").length;
      expect(held).to.be.within(2, 5);
      expect(said.filter((word) => word === "Blocked").length).to.equal(agents + 2 - held);
      expect(await reviewed.upstream.calls()).to.deep.equal([]);
      const waiting: string[] = [];
      for (let cursor: string | null = ""; cursor !== null; ) {
        const target: string = `/admin/v1/approvals?limit=1${cursor === "" ? "" : `&cursor=${cursor}`}`;
        const { body } = await send(reviewed.gateway.adminUrl, { target, headers: [["x-api-key", keys.viewer]] });
        const page = JSON.parse(body) as { items: readonly { id: string }[]; next: string | null };
        waiting.push(...page.items.map((approval) => approval.id));
        cursor = page.next;
      }
      expect([waiting.length, new Set(waiting).size]).to.deep.equal([held, held]);
      const evidence = new EvidenceReader(reviewed.gateway.adminUrl, keys.operator);
      const [session] = await evidence.sessions();
      expect([session?.review, session?.block]).to.deep.equal([held, agents + 2 - held]);
      expect(await evidence.verify()).to.include({ ok: true });
      await Promise.all(flood.map((agent) => agent.hangUp()));
    } finally {
      await reviewed.stop();
    }
  });
});

interface KilledPage {
  readonly items: readonly { readonly session: string; readonly reason: string; readonly note: string | null }[];
  readonly next: string | null;
}

function isBlocked({ result }: Answer): boolean {
  return result?.isError === true;
}

function textOf({ result }: Answer): string {
  return result?.content?.[0]?.text ?? "";
}

/** Where in the chain the session's event `name` stands. */
function seqOf(records: readonly EvidenceRecord[], name: string): number {
  return records.find((record) => record.kind === "session" && record.detail.event === name)?.seq ?? -1;
}

async function until(holds: () => Promise<boolean>): Promise<void> {
  for (const end = performance.now() + 60_000; performance.now() < end; await sleep(20)) if (await holds()) return;
  throw new Error("expected it to hold within 5 s");
}
