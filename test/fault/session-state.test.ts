import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { expect } from "chai";
import type { SessionDetail } from "../../core/session/session-directory.ts";
import { Agent } from "../support/agent.ts";
import { EvidenceReader } from "../support/evidence-reader.ts";
import { type RunningGateway, startGateway } from "../support/gateway.ts";
import { type Recorder, startRecorder } from "../support/recorder.ts";
import { roundsOf } from "../support/rounds.ts";
import { sessionFiles } from "../support/session-rules.ts";
import { siteConfig, siteKey } from "../support/site.ts";
import { send } from "../support/wire.ts";

/** How often something is killed or damaged. */
const rounds = roundsOf(5, 50);
const agents = 12;
const maxRoundMs = 400;
/** What a risky call adds. */
const points = 10;
/** Nothing is stopped, whatever all agents of the key do together, and in a week next to nothing drains. */
const sessions = "sessions: { risk: { kill_at: 0, window_seconds: 604800 } }";

/** What one agent did until the kill. */
interface Errand {
  readonly label: string;
  sent: number;
  answered: number;
  /** Whether it saw the answer to the call that taints. */
  sawTaint: boolean;
}

describe("what sessions did and met, when the gateway is killed at a random point", () => {
  let folder: string;
  let remote: Recorder;
  let cut = 0;

  before(async () => {
    folder = await mkdtemp(join(tmpdir(), "session-kill-"));
    remote = await startRecorder();
  });

  after(async () => {
    await remote.stop();
    await rm(folder, { recursive: true });
  });

  for (let round = 1; round <= rounds; round++) {
    it(`is known after a start as far as any answer told of it (${round})`, async () => {
      const errands = await loadAndKill(await start(), `r${round}-`);
      const gateway = await start();
      const begun = await new EvidenceReader(gateway.adminUrl, siteKey).sessions();
      for (const errand of errands) {
        const id = begun.find(({ label }) => label === errand.label)?.id;
        if (id === undefined) expect(errand.answered, errand.label).to.equal(0);
        else expectKept(errand, await stateOf(gateway, id));
        if (errand.answered < errand.sent) cut++;
      }
      await gateway.kill9();
    });
  }

  it("was cut short with calls under way", () => expect(cut).to.be.above(0));

  function start(): Promise<RunningGateway> {
    const config = siteConfig({ remoteUrl: remote.url, more: `log: { level: warn }\n${sessions}` });
    return startGateway({ folder, config, files: sessionFiles() });
  }
});

async function stateOf(gateway: RunningGateway, id: string): Promise<SessionDetail> {
  const target = `/admin/v1/sessions/${id}`;
  const { status, body } = await send(gateway.adminUrl, { target, headers: [["x-api-key", siteKey]] });
  expect(status, body).to.equal(200);
  return JSON.parse(body) as SessionDetail;
}

function expectKept({ label, sent, answered, sawTaint }: Errand, state: SessionDetail): void {
  expect(state.actions, label).to.be.within(answered, sent);
  // A point more or less has drained by now.
  expect(state.risk, label).to.be.within(points * state.actions - 1, points * state.actions);
  expect(state.taints.length, label).to.be.within(sawTaint ? 1 : 0, 1);
  expect(state.tools, label).to.equal(1);
}

/** Lets the agents work until the kill; returns how far each of them got. */
async function loadAndKill(gateway: RunningGateway, prefix: string): Promise<readonly Errand[]> {
  const errands: readonly Errand[] = Array.from({ length: agents }, (_, index) => {
    return { label: `${prefix}${index}`, sent: 0, answered: 0, sawTaint: false };
  });
  const killed = new AbortController();
  const working = Promise.all(errands.map((errand) => work(gateway.url, errand, killed.signal)));
  await sleep(Math.random() * maxRoundMs);
  killed.abort();
  await gateway.kill9();
  await working;
  return errands;
}

/** One risky call after the other, the third of which taints; until no whole answer comes. */
async function work(url: string, errand: Errand, killed: AbortSignal): Promise<void> {
  const agent = new Agent(url, siteKey, errand.label);
  for (;;) {
    const taints = errand.sent === 2;
    errand.sent++;
    const answer = await agent.call("echo", { risky: true, ...(taints ? { tainting: true } : {}) }).catch((error) => {
      if (!killed.aborted) throw error;
      return null;
    });
    if (answer === null) return agent.hangUp();
    expect([answer.status, answer.result?.isError ?? false], errand.label).to.deep.equal([200, false]);
    errand.answered++;
    errand.sawTaint ||= taints;
  }
}
