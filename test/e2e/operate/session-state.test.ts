import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { expect } from "chai";
import { readBundle } from "../../../core/evidence/bundle/bundle-line.ts";
import type { SessionDetail, SessionPage, SessionView } from "../../../core/session/session-directory.ts";
import { Agent, type Answer } from "../../support/agent.ts";
import { EvidenceReader } from "../../support/evidence-reader.ts";
import { type RunningGateway, startGateway } from "../../support/gateway.ts";
import { separateSession } from "../../support/own-task.ts";
import { type Recorder, startRecorder } from "../../support/recorder.ts";
import { sessionFiles } from "../../support/session-rules.ts";
import { siteConfig, siteKey } from "../../support/site.ts";
import { until } from "../../support/webhook-receiver.ts";
import { send } from "../../support/wire.ts";
import { runGateway } from "../../unit/cli/run.ts";

const shiftedClock = fileURLToPath(new URL("../../fixture/shifted-clock.js", import.meta.url));
const atOnce = 100;
/** Risky calls that a session may make before it comes to the threshold of 80. */
const riskyCalls = 7;

describe("what sessions did and met", () => {
  let upstream: Recorder;
  let gateway: RunningGateway;
  let reader: EvidenceReader;

  before(async () => {
    upstream = await startRecorder();
  });

  after(() => upstream.stop());

  afterEach(() => gateway.stop());

  /** `folder`: of an earlier gateway, whose state this one goes on with. */
  async function start(sessions = "{}", env: Readonly<Record<string, string>> = {}, folder?: string): Promise<void> {
    const config = siteConfig({ remoteUrl: upstream.url, more: `sessions: ${sessions}` });
    const files = sessionFiles();
    gateway = await startGateway({ config, files, env, ...(folder === undefined ? {} : { folder }) });
    reader = new EvidenceReader(gateway.adminUrl, siteKey);
  }

  /** Calls in one session, all at once, and says which of them were answered by the upstream. */
  async function callAtOnce(label: string, args: object): Promise<readonly Answer[]> {
    const agents = Array.from({ length: atOnce }, () => new Agent(gateway.url, siteKey, label));
    const answers = await Promise.all(agents.map((agent, n) => agent.call("echo", { ...args, label, n })));
    await Promise.all(agents.map((agent) => agent.hangUp()));
    return answers;
  }

  async function callInTurn(label: string, args: object, count: number): Promise<readonly Answer[]> {
    const agent = new Agent(gateway.url, siteKey, label);
    const answers: Answer[] = [];
    for (let n = 0; n < count; n++) answers.push(await agent.call("echo", { ...args, label, n }));
    await agent.hangUp();
    return answers;
  }

  /** How many calls of a session the upstream saw, by its own log. */
  async function arrived(label: string): Promise<number> {
    return (await upstream.calls()).filter(({ body }) => body.includes(`"label":"${label}"`)).length;
  }

  async function ask<T>(target: string): Promise<T> {
    const { status, body } = await send(gateway.adminUrl, { target, headers: [["x-api-key", siteKey]] });
    expect(status, body).to.equal(200);
    return JSON.parse(body) as T;
  }

  async function idOf(label: string): Promise<string> {
    return (await reader.sessions()).find((session) => session.label === label)?.id ?? "none";
  }

  async function stateOf(label: string): Promise<SessionDetail> {
    return ask(`/admin/v1/sessions/${await idOf(label)}`);
  }

  async function metrics(): Promise<string> {
    return (await send(gateway.metricsUrl, { target: "/metrics" })).body;
  }

  /** The names of all series of the gateway's own, with their labels. */
  async function seriesOf(): Promise<readonly string[]> {
    return [...(await metrics()).matchAll(/^(gateway_.*) \S+$/gm)].map(([, name = ""]) => name);
  }

  it("counts actions that come at once: not one is let through beyond what a rule allows [S63]", async () => {
    await start();
    const answers = await callAtOnce("limited", { limited: true });
    expect(answers.filter(isBlocked).length).to.equal(atOnce - 5);
    expect(await arrived("limited")).to.equal(5);
    expect(await stateOf("limited")).to.include({ actions: 5, state: "active" });
  });

  it("stops a session with the action that is too much [R1.1-17, R3.2-10, R8-2]", async () => {
    await start();
    const answers = await callInTurn("risky", { risky: true }, riskyCalls + 2);
    expect(answers.map(isBlocked)).to.deep.equal([...Array(riskyCalls).fill(false), true, true]);
    expect(answers.at(-1)?.result?.content?.[0]?.text).to.include("(rule session.killed)");
    expect(await arrived("risky")).to.equal(riskyCalls);
    expect(await stateOf("risky")).to.include({ state: "stopped", risk: 80, actions: riskyCalls });
    await separateSession(gateway.adminUrl, siteKey, "ci", "calm");
    expect((await callInTurn("calm", {}, 1)).map(isBlocked)).to.deep.equal([false]);
    expect(await metrics()).to.include('gateway_kills_total{scope="session",reason="risk"} 1');
  });

  it("dispatches nothing behind the kill, and not one too many, however many actions come at once [S63]", async () => {
    await start();
    await callAtOnce("rushed", { risky: true });
    const records = await reader.records(await idOf("rushed"));
    const dispatched = records.filter((record) => record.effect === "dispatched");
    expect(dispatched.length).to.be.at.most(riskyCalls);
    // What was on its way when the session was stopped may not have arrived.
    expect(await arrived("rushed")).to.be.at.most(dispatched.length);
    const [kill] = await killsIn(await idOf("rushed"));
    expect(kill).to.be.a("number");
    expect(dispatched.filter(({ seq }) => seq > (kill as number))).to.deep.equal([]);
    expect(await stateOf("rushed")).to.include({ state: "stopped", actions: dispatched.length });
    expect(await reader.verify()).to.include({ ok: true });
  });

  it("stops nobody and hides nothing in shadow mode, however much comes at once [S63]", async () => {
    await start("{ risk: { mode: shadow } }");
    const answers = await callAtOnce("shadowed", { risky: true });
    expect(answers.filter(isBlocked)).to.deep.equal([]);
    expect(await arrived("shadowed")).to.equal(atOnce);
    expect(await stateOf("shadowed")).to.include({ state: "active", actions: atOnce, risk: 10 * atOnce });
    expect(await metrics()).to.match(/^gateway_session_would_kill_total 1$/m);
    expect((await callInTurn("shadowed", { limited: true }, 1)).map(isBlocked)).to.deep.equal([true]);
  });

  it("adds what is found in answers, once for each, and stops the session with the answer that is too much", async () => {
    await start();
    await callInTurn("revealed", { revealing: true }, 2);
    expect(await stateOf("revealed")).to.include({ risk: 60, state: "active" });
    await callInTurn("revealed", { revealing: true }, 1);
    expect(await stateOf("revealed")).to.include({ state: "stopped", actions: 3 });
    expect((await callInTurn("revealed", {}, 1)).map(isBlocked)).to.deep.equal([true]);
    expect(await arrived("revealed")).to.equal(3);
  });

  it("stops a session where `sessions.risk.kill_at` says, and none where that is 0", async () => {
    await start("{ risk: { kill_at: 30 } }");
    expect((await callInTurn("early", { risky: true }, 3)).map(isBlocked)).to.deep.equal([false, false, true]);
    await gateway.stop();
    await start("{ risk: { kill_at: 0 } }");
    expect((await callInTurn("never", { risky: true }, 12)).some(isBlocked)).to.equal(false);
  });

  it("lets risk drain as `sessions.risk.window_seconds` says", async () => {
    await start("{ risk: { kill_at: 30, window_seconds: 1 } }");
    await callInTurn("draining", { risky: true }, 2);
    await sleep(1_000);
    expect(await stateOf("draining")).to.include({ risk: 0 });
    expect((await callInTurn("draining", { risky: true }, 2)).map(isBlocked)).to.deep.equal([false, false]);
  });

  it("keeps the history of as many sessions as `sessions.max_active` says, and the state of all [S68]", async () => {
    await start("{ max_active: 100, risk: { kill_at: 0 } }");
    await callInTurn("many-0", { risky: true }, 1);
    await metrics(); // the first of them is in the second
    await callInTurn("many-1", { risky: true }, 1);
    const series = await seriesOf();
    for (let session = 2; session <= 100; session++) await callInTurn(`many-${session}`, { risky: true }, 1);
    expect(await metrics()).to.match(/^gateway_watched_sessions 100$/m);
    expect((await seriesOf()).filter((name) => !series.includes(name))).to.deep.equal([]);
    const [folded, active] = [await stateOf("many-0"), await stateOf("many-100")];
    expect([folded.history.length, active.history.length]).to.deep.equal([0, 1]);
    expect([folded.actions, folded.risk]).to.deep.equal([active.actions, active.risk]);
    await gateway.stop();
    await start("{ max_active: 101, risk: { kill_at: 0 } }");
    for (let session = 0; session <= 100; session++) await callInTurn(`many-${session}`, {}, 1);
    expect((await stateOf("many-0")).history.length).to.equal(1);
  });

  it("is forgotten after as many days of silence as `sessions.idle_retention_days` says", async () => {
    const folder = await mkdtemp(join(tmpdir(), "session-forget-"));
    const later = async (days: number): Promise<SessionPage> => {
      await writeFile(join(folder, "clock"), String(days * 86_400_000));
      const env = { NODE_OPTIONS: `--import=${shiftedClock}`, CLOCK_OFFSET: join(folder, "clock") };
      await start("{ idle_retention_days: 3 }", env, folder);
      return ask("/admin/v1/sessions");
    };
    try {
      expect((await later(0)).items).to.deep.equal([]);
      await callInTurn("silent", { tainting: true }, 1);
      await gateway.stop();
      expect((await later(2)).items.length).to.equal(1);
      await gateway.stop();
      await later(4);
      await until(async () => (await ask<SessionPage>("/admin/v1/sessions")).items.length === 0, "an empty list");
      const { forgotten } = await ask<SessionPage>("/admin/v1/sessions");
      expect(forgotten).to.deep.equal({ sessions: 1, actions: 1, highest_risk: 0 });
      expect((await reader.sessions()).map(({ label }) => label)).to.deep.equal(["silent"]);
      expect(await reader.verify()).to.include({ ok: true });
    } finally {
      await gateway.stop();
      await rm(folder, { recursive: true });
    }
  });

  it("is told to every role of the tenant, by page and by the command line, and taken away by `reset`", async () => {
    await start();
    await callInTurn("one", { risky: true }, 3);
    await callInTurn("two", { risky: true, tainting: true }, 1);
    await callInTurn("three", {}, 1);
    const ids = await Promise.all(["one", "two", "three"].map(idOf));
    const views = await pages("sort=risk&limit=2");
    expect(views.map(({ session }) => session)).to.deep.equal(ids);
    expect((await pages("sort=last&limit=1")).map(({ session }) => session)).to.deep.equal(ids.toReversed());
    expect(views[1]).to.deep.include({ risk: 10, taints: ["seen"], state: "active" });
    const type = (...args: string[]) =>
      runGateway(["sessions", ...args, "--admin", gateway.adminUrl], { GATEWAY_API_KEY: siteKey });
    const listed = await type("list", "--limit", "2");
    expect(listed.stdout.split("\n")[2]).to.match(
      /^session-v1-[0-9a-f]{64} {2}two {4}active +10 +1 +0 +1 {2}\S+Z {2}seen$/,
    );
    expect(listed.stderr).to.equal("gateway: there are more; raise `--limit` to list them\n");
    const two = ids[1] as string;
    const shown = (await type("show", two)).stdout.split("\n");
    expect(shown[1]).to.equal("label      two");
    expect(shown[9]).to.match(/^taint seen {2}\S+Z {2}from echo on remote$/);
    expect(shown[10]).to.match(/^action {2}\S+Z {2}allow {2}execute echo on remote$/);
    expect(await type("reset", two, "--reason", "seen to")).to.include({ code: 0, stderr: `gateway: reset ${two}\n` });
    const after = JSON.parse((await type("show", two, "--json")).stdout) as SessionDetail;
    expect(after).to.deep.include({ risk: 0, taints: [], actions: 1 });
    expect((await type("reset", "session-v1-none", "--reason", "x")).stderr).to.include("not found");
    expect(await reader.verify()).to.include({ ok: true });
  });

  it("says 400 to a question and an order that are not understood", async () => {
    await start();
    await callInTurn("asked", {}, 1);
    const headers = [["x-api-key", siteKey]] as const;
    for (const query of ["sort=name", "sort=risk&sort=last", "cursor=e30", "limit=0", "order=risk"]) {
      expect((await send(gateway.adminUrl, { target: `/admin/v1/sessions?${query}`, headers })).status).to.equal(400);
    }
    const target = `/admin/v1/sessions/${await idOf("asked")}/reset`;
    for (const body of ["{}", '{"reason":""}', '{"reason":"x","more":1}']) {
      const order = {
        method: "POST",
        target,
        body,
        headers: [...headers, ["content-type", "application/json"]],
      } as const;
      expect((await send(gateway.adminUrl, order)).status, body).to.equal(400);
    }
  });

  async function pages(query: string): Promise<readonly Exclude<SessionView, { state: "damaged" }>[]> {
    const found: SessionView[] = [];
    for (let cursor: string | null = ""; cursor !== null; ) {
      const page: SessionPage = await ask(`/admin/v1/sessions?${query}${cursor === "" ? "" : `&cursor=${cursor}`}`);
      found.push(...page.items);
      cursor = page.next;
    }
    return found as readonly Exclude<SessionView, { state: "damaged" }>[];
  }

  /** Where in the chain a session was stopped. */
  async function killsIn(session: string): Promise<readonly number[]> {
    const target = `/admin/v1/evidence/sessions/${session}/export`;
    const { body } = await send(gateway.adminUrl, { target, headers: [["x-api-key", siteKey]] });
    const records = readBundle(Buffer.from(body)).entries.map(({ record }) => record);
    return records.flatMap((each) => (each.kind === "session" && each.detail.event === "killed" ? [each.seq] : []));
  }
});

function isBlocked({ result }: Answer): boolean {
  return result?.isError ?? false;
}
