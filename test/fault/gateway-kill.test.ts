import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { expect } from "chai";
import type { ActionRecord } from "../../core/evidence/record/record.ts";
import { Agent } from "../support/agent.ts";
import { EvidenceReader } from "../support/evidence-reader.ts";
import { type RunningGateway, startGateway } from "../support/gateway.ts";
import { type Recorder, startRecorder } from "../support/recorder.ts";
import { roundsOf } from "../support/rounds.ts";
import { readCalls, siteConfig, siteFiles, siteKey } from "../support/site.ts";

/** How often something is killed or damaged. */
const rounds = roundsOf(5, 200);
const agents = 24;
/** A kill comes after at most so many answers, wherever the rest of the calls then are. */
const maxAnswers = 6 * agents;

/** The tools an agent calls in turn, and what the chain has to say of each once it was answered. */
const turns = [
  ["echo", "success"],
  ["read_note", "error"],
  ["echo", "success"],
  ["delete_note", "not_dispatched"],
] as const;

/** What one agent did until the kill. */
interface Errand {
  readonly label: string;
  sent: number;
  answered: number;
}

describe("when the gateway is killed at a random point under load", () => {
  let folder: string;
  let localLog: string;
  let remote: Recorder;
  const decided = new Map<string, number>();
  let unknown = 0;

  before(async () => {
    folder = await mkdtemp(join(tmpdir(), "gateway-kill-"));
    localLog = join(folder, "local.jsonl");
    remote = await startRecorder();
  });

  after(async () => {
    await remote.stop();
    await rm(folder, { recursive: true });
  });

  for (let round = 1; round <= rounds; round++) {
    it(`keeps every answer it gave, and settles each action in flight as unknown once (${round})`, async () => {
      const errands = await loadAndKill(await start(), `r${round}-`);
      if (round % 5 === 0) await killWhileStarting();
      const gateway = await start();
      const reader = new EvidenceReader(gateway.adminUrl, siteKey);
      const records = await reader.recordsOf((label) => label?.startsWith(`r${round}-`) ?? false);
      expect(await reader.verify()).to.include({ ok: true });
      await gateway.kill9();
      for (const errand of errands) {
        decided.set(errand.label, expectKept(errand, recordsOf(records, errand.label)));
      }
      unknown += records.filter(({ effect }) => effect === "unknown").length;
    });
  }

  it("dispatched nothing that the chain does not hold, and nothing that was blocked", async () => {
    const seen = [...(await remote.calls()).map(({ body }) => body), ...(await readCalls(localLog)).map(toText)];
    const marks = seen.filter((text) => !text.includes('"warm"')).map((text) => /"(r\d+-\d+) (\d+)"/.exec(text) ?? []);
    for (const [mark, label = "", turn] of marks) expect(Number(turn), mark).to.be.below(decided.get(label) ?? 0);
    expect(seen.filter((text) => text.includes("delete_note"))).to.deep.equal([]);
    expect(seen.length, "calls").to.be.above(rounds * agents);
    expect(unknown, "actions that a kill met in flight").to.be.above(0);
  });

  function start(deadlineMs = 60_000): Promise<RunningGateway> {
    const config = siteConfig({
      remoteUrl: remote.url,
      localLog,
      more: "log: { level: warn }\nsessions: { risk: { kill_at: 0 } }",
    });
    return startGateway({ folder, config, files: siteFiles(), deadlineMs });
  }

  /** A recovery can be cut short as well. */
  async function killWhileStarting(): Promise<void> {
    try {
      await (await start(200 + Math.random() * 800)).kill9();
    } catch (error) {
      expect((error as Error).message).to.match(/^expected a ready line within/);
    }
  }
});

/** Lets the agents work until the kill; returns how far each of them got. */
async function loadAndKill(gateway: RunningGateway, prefix: string): Promise<readonly Errand[]> {
  const errands = Array.from({ length: agents }, (_, index) => ({ label: `${prefix}${index}`, sent: 0, answered: 0 }));
  const killed = new AbortController();
  await warm(gateway.url);
  const working = Promise.all(errands.map((errand) => work(gateway.url, errand, killed.signal)));
  const enough = Math.random() * maxAnswers;
  while (errands.reduce((sum, { answered }) => sum + answered, 0) < enough) await sleep(1);
  killed.abort();
  await gateway.kill9();
  await working;
  return errands;
}

/** Connects both upstreams, so that the kill meets calls and not only handshakes. */
async function warm(url: string): Promise<void> {
  const agent = new Agent(url, siteKey);
  for (const [tool] of turns.slice(0, 2)) await agent.call(tool, { title: "warm" });
  await agent.hangUp();
}

/** Calls one tool after the other. A call that ends without an answer ends the errand, once the kill is on its way. */
async function work(url: string, errand: Errand, killed: AbortSignal): Promise<void> {
  const agent = new Agent(url, siteKey, errand.label);
  for (;;) {
    const [tool, effect] = turnOf(errand.sent);
    const mark = `${errand.label} ${errand.sent++}`;
    const answer = await agent.call(tool, tool === "echo" ? { mark } : { title: mark }).catch((error: Error) => {
      if (!killed.aborted) throw error;
      return null;
    });
    if (answer === null) return agent.hangUp();
    expect([answer.status, answer.result?.isError ?? false], mark).to.deep.equal([200, effect !== "success"]);
    errand.answered++;
  }
}

/** Compares what an agent saw with what the chain holds of its session; returns how many decisions that is. */
function expectKept(errand: Errand, records: readonly ActionRecord[]): number {
  const decisions = records.filter(({ kind }) => kind === "decision");
  expect(decisions.length, errand.label).to.be.within(errand.answered, errand.sent);
  for (const [turn, decision] of decisions.entries()) {
    const [tool, effect] = turnOf(turn);
    const title = `${errand.label} ${turn}`;
    expect(decision.action.tool, title).to.equal(tool);
    const outcomes = records.filter(({ kind, action }) => kind === "outcome" && action.id === decision.action.id);
    if (effect === "not_dispatched") expect([decision.effect, outcomes.length], title).to.deep.equal([effect, 0]);
    else {
      expect([decision.effect, outcomes.length], title).to.deep.equal(["dispatched", 1]);
      expect(outcomes[0]?.effect, title).to.be.oneOf(
        possibleEffects(effect, turn < errand.answered, decision, outcomes),
      );
    }
  }
  return decisions.length;
}

/** What was answered is known; what the killed process left without outcome is not; the kill may end an upstream first. */
function possibleEffects(
  effect: string,
  answered: boolean,
  decision: ActionRecord,
  outcomes: readonly ActionRecord[],
): readonly string[] {
  if (answered) return [effect];
  const inTime = outcomes.some(({ writer }) => writer.epoch === decision.writer.epoch);
  return inTime ? [effect, "unknown"] : ["unknown"];
}

function recordsOf(records: readonly ActionRecord[], label: string): readonly ActionRecord[] {
  return records.filter(({ session }) => session.label === label);
}

function turnOf(turn: number): (typeof turns)[number] {
  return turns[turn % turns.length] as (typeof turns)[number];
}

function toText(call: object): string {
  return JSON.stringify(call);
}
