import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { expect } from "chai";
import type { ActionRecord } from "../../core/evidence/record/record.ts";
import type { Answer } from "../support/agent.ts";
import { HeldSite, overHttp } from "../support/held-site.ts";
import { type Recorder, startRecorder } from "../support/recorder.ts";
import { roundsOf } from "../support/rounds.ts";

/**
 * How often the gateway is killed; many times in `npm run test:long`. Where `ApprovalQueue.#use`
 * leaves the approval in memory, or the gate dispatches before its decision is durable, these tests fail.
 */
const rounds = roundsOf(3, 1000);
const races = roundsOf(20, 200);
const retries = 64;
const maxRetries = 200;
/** Long enough for some kills to come after everything was answered. */
const maxRoundMs = 120;

describe("approvals under retries and kills", () => {
  let folder: string;
  let upstream: Recorder;
  let site: HeldSite;

  before(async () => {
    folder = await mkdtemp(join(tmpdir(), "approval-kill-"));
    upstream = await startRecorder();
    site = new HeldSite({ upstreams: [overHttp("remote", upstream.url)], folder, more: "log: { level: warn }" });
  });

  // Where a test failed it left its gateway running.
  afterEach(() => site.kill9().catch(() => undefined));

  after(async () => {
    await upstream.stop();
    await rm(folder, { recursive: true });
  });

  it(`of ${retries} retries at once over as many sockets one is dispatched, ${races} times [S44] [R3.1-5] [R8-1]`, async function () {
    this.timeout(30_000 + races * 1_000);
    await site.start();
    const agents = Array.from({ length: maxRetries }, () => site.agent());
    for (let race = 0; race < races; race++) {
      const mark = `race ${race}`;
      const id = await site.holdAndApprove("echo", { mark });
      const at = race % 20 === 0 ? maxRetries : retries;
      const answers = await Promise.all(agents.slice(0, at).map((agent) => agent.call("echo", { mark })));
      const passed = answers.filter(({ result }) => result?.isError !== true);
      expect([at, passed.length], mark).to.deep.equal([at, 1]);
      expect((await site.show(id)).state).to.equal("consumed");
      await denyHeld(answers);
    }
    const marks = await receipts();
    for (let race = 0; race < races; race++) expect(marks.get(`race ${race}`), `race ${race}`).to.equal(1);
    expect(await site.evidence.verify()).to.include({ ok: true });
    await site.stop();
  });

  const met = { approved: 0, unknown: 0, success: 0 };

  it(`killed ${rounds} times between approval and answer: no approval runs twice, or again after a start [S45]`, async function () {
    this.timeout(30_000 + rounds * 10_000);
    await site.start();
    for (let round = 0; round < rounds; round++) await killRound(round);
    await site.stop();
    const counts = [...(await receipts()).values()];
    expect(Math.max(...counts)).to.equal(1);
    if (this.test !== undefined) this.test.title += ` (${JSON.stringify(met)})`;
    if (rounds >= 15) for (const [what, count] of Object.entries(met)) expect(count, what).to.be.above(0);
  });

  it("killed between a call and the answer of its reviewer: what was answered counts, what was not waits [S45]", async function () {
    this.timeout(30_000 + rounds * 10_000);
    await site.start();
    for (let round = 0; round < Math.ceil(rounds / 3); round++) await reviewRound(round);
    await site.stop();
  });

  async function reviewRound(round: number): Promise<void> {
    const label = `review-${round}`;
    const marks = Array.from({ length: 24 }, (_, index) => `${label} ${index}`);
    const said = new Map<string, { id?: string; approved?: true }>();
    const asking = marks.map(async (mark) => {
      await sleep(Math.random() * maxRoundMs * 0.5);
      const id = await site.hold("echo", args(mark), "agent", label);
      said.set(mark, { id });
      await site.approve(id);
      said.set(mark, { id, approved: true });
    });
    const asked = Promise.allSettled(asking);
    await sleep(Math.random() * maxRoundMs);
    await site.kill9();
    await asked;
    await site.start();
    const states = new Map<string, string>();
    for (const { id } of said.values()) if (id !== undefined) states.set(id, (await site.show(id)).state);
    const answers = await Promise.all(marks.map((mark) => site.call("echo", args(mark), "agent", label)));
    const ran = await receipts();
    for (const [index, mark] of marks.entries()) {
      const { id = "", approved = false } = said.get(mark) ?? {};
      const state = states.get(id);
      expect(state, mark).to.be.oneOf(approved ? ["approved"] : id === "" ? [undefined] : ["pending", "approved"]);
      const isRun = answers[index]?.result?.isError !== true;
      expect(isRun, mark).to.equal(state === "approved");
      expect(ran.get(mark) ?? 0, mark).to.equal(isRun ? 1 : 0);
    }
    expect(await site.evidence.verify()).to.include({ ok: true });
    await denyHeld(answers);
  }

  /** Several approvals at once, each retried over several sockets, and a kill somewhere in it. */
  async function killRound(round: number): Promise<void> {
    const label = `kill-${round}`;
    const marks = Array.from({ length: 8 }, (_, index) => `${label} ${index}`);
    const ids = await Promise.all(marks.map((mark) => site.holdAndApprove("echo", args(mark), "agent", label)));
    const retrying = marks.flatMap((mark) => Array.from({ length: 4 }, () => retry(mark, label)));
    await sleep(Math.random() * maxRoundMs);
    await site.kill9();
    await Promise.all(retrying);
    await site.start();
    const before = await receipts();
    const states = await Promise.all(ids.map(async (id) => (await site.show(id)).state));
    const answers = await Promise.all(marks.map((mark) => site.call("echo", args(mark), "agent", label)));
    const after = await receipts();
    const records = await site.evidence.recordsOf((each) => each === label);
    for (const [index, mark] of marks.entries()) {
      const [id = "", state = ""] = [ids[index], states[index]];
      const counts = [before.get(mark) ?? 0, after.get(mark) ?? 0];
      expect(state, mark).to.be.oneOf(["approved", "consumed"]);
      if (state === "approved")
        expect([...counts, answers[index]?.result?.isError], mark).to.deep.equal([0, 1, undefined]);
      else expect([counts[0], answers[index]?.result?.isError], mark).to.deep.equal([counts[1], true]);
      met[state === "approved" ? "approved" : effectOf(records, id)]++;
      expect((await site.show(id)).state, mark).to.equal("consumed");
    }
    expect(await site.evidence.verify()).to.include({ ok: true });
    await denyHeld(answers);
  }

  async function retry(mark: string, label: string): Promise<void> {
    const agent = site.agent("agent", label);
    await sleep(Math.random() * maxRoundMs * 0.5);
    await agent.call("echo", args(mark)).catch(() => undefined);
  }

  /** Keeps the queue short. */
  async function denyHeld(answers: readonly Answer[]): Promise<void> {
    const ids = answers.flatMap(
      ({ result }) => /approval (apr_[0-9a-f]{32}) is pending/i.exec(JSON.stringify(result))?.[1] ?? [],
    );
    await Promise.all([...new Set(ids)].map((id) => site.review(id, "deny")));
  }

  /** How often the upstream was called, by mark. */
  async function receipts(): Promise<ReadonlyMap<string, number>> {
    const counts = new Map<string, number>();
    for (const { body } of await upstream.calls()) {
      const [, mark = ""] = /"mark":"([^"]*)"/.exec(body) ?? [];
      counts.set(mark, (counts.get(mark) ?? 0) + 1);
    }
    return counts;
  }
});

/** Answered late enough for kills to come between. */
function args(mark: string): object {
  return { mark, wait_ms: 20 };
}

/** What became of the one action that used the approval. */
function effectOf(records: readonly ActionRecord[], id: string): "unknown" | "success" {
  const uses = records.filter(({ approval }) => approval?.id === id && approval.state === "consumed");
  expect(uses, id).to.have.length(1);
  const outcomes = records.filter(({ kind, action }) => kind === "outcome" && action.id === uses[0]?.action.id);
  expect(outcomes, id).to.have.length(1);
  expect(outcomes[0]?.effect, id).to.be.oneOf(["unknown", "success"]);
  return outcomes[0]?.effect as "unknown" | "success";
}
