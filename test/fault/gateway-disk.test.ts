import { mkdtemp, rm } from "node:fs/promises";
import { constants, tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { expect } from "chai";
import type { ActionRecord } from "../../core/evidence/record/record.ts";
import { Agent, type Answer } from "../support/agent.ts";
import { DiskFault } from "../support/disk-fault.ts";
import { EvidenceReader } from "../support/evidence-reader.ts";
import { type RunningGateway, startGateway } from "../support/gateway.ts";
import { type Recorder, startRecorder } from "../support/recorder.ts";
import { scrape } from "../support/scrape.ts";
import { siteConfig, siteFiles, siteKey } from "../support/site.ts";

const { ENOSPC, EIO, EAGAIN } = constants.errno;
/** A repair is attempted at most once a second. */
const repairMs = 1_100;

type Fault = Parameters<DiskFault["begin"]>;
const faults: readonly (readonly [string, Fault])[] = [
  ["the disk is full", ["write", ENOSPC, "/state/"]],
  ["the disk cannot be written", ["write", EIO, "/state/"]],
  ["the disk cannot be synced", ["sync", EIO, "/state/"]],
  ["the disk of the high-water marks is full", ["write", ENOSPC, "/high-water"]],
  ["the high-water marks cannot be synced", ["sync", EIO, "/high-water"]],
];

describe("a gateway whose disk fails", () => {
  let folder: string;
  let disk: DiskFault;
  let upstream: Recorder;
  let gateway: RunningGateway;
  let reader: EvidenceReader;
  let failures = 0;

  before(async () => {
    folder = await mkdtemp(join(tmpdir(), "gateway-disk-"));
    disk = await DiskFault.compile(folder);
    upstream = await startRecorder();
    gateway = await startGateway({
      config: siteConfig({ remoteUrl: upstream.url }),
      files: siteFiles(),
      env: disk.env,
    });
    reader = new EvidenceReader(gateway.adminUrl, siteKey);
  });

  afterEach(() => disk.end());

  after(async () => {
    expect(await gateway.stop()).to.equal(0);
    await upstream.stop();
    await rm(folder, { recursive: true });
  });

  for (const [what, fault] of faults) {
    it(`runs nothing and answers 503 while ${what}, and serves again after that [S65]`, async () => {
      const label = fault.join("-").replaceAll("/", "");
      await withAgent(label, async (agent) => {
        expectAnswered(await agent.call("echo", { mark: `${label} before` }));
        await disk.begin(...fault);
        for (const turn of [1, 2, 3]) expectRefused(await agent.call("echo", { mark: `${label} during ${turn}` }));
        const failing = await scrape(gateway.metricsUrl);
        await sleep(repairMs);
        expectRefused(await agent.call("echo", { mark: `${label} repair` }));
        await disk.end();
        expectAnswered(await callUntilServed(agent, `${label} after`));
        const mended = await scrape(gateway.metricsUrl);
        expect([failing, mended].map((now) => now.get("gateway_evidence_writable"))).to.deep.equal([0, 1]);
        expect([failing, mended].map((now) => now.get('gateway_evidence_chains{state="ready"}'))).to.deep.equal([0, 1]);
        expect(failing.get("gateway_evidence_write_failures_total")).to.be.above(failures);
        failures = failing.get("gateway_evidence_write_failures_total") ?? 0;
      });
      expect(await marksWith(label)).to.deep.equal([`${label} before`, `${label} after`]);
      await expectSound(label, 2);
    });
  }

  it("stays refused while another process holds the store it wants to mend, and serves again after that [S65]", async () => {
    await withAgent("lock", async (agent) => {
      expectAnswered(await agent.call("echo", { mark: "lock before" }));
      await disk.begin("write", ENOSPC, "/state/");
      expectRefused(await agent.call("echo", { mark: "lock during" }));
      await disk.begin("lock", EAGAIN, "/state/LOCK");
      for (const turn of [1, 2]) {
        await sleep(repairMs);
        expectRefused(await agent.call("echo", { mark: `lock lost ${turn}` }));
      }
      await disk.end();
      expectAnswered(await callUntilServed(agent, "lock after"));
    });
    expect(await marksWith("lock")).to.deep.equal(["lock before", "lock after"]);
    await expectSound("lock", 2);
    expect(gateway.stderr()).to.match(/evidence_repair_failed.*LOCK|LOCK.*evidence_repair_failed/);
  });

  it("withholds the answer of an action whose outcome cannot be written, and records it as unknown [S65]", async () => {
    await withAgent("outcome", async (agent) => {
      const calling = agent.call("echo", { mark: "outcome during", wait_ms: 600 });
      await sleep(300);
      await disk.begin("write", ENOSPC, "/state/");
      expectRefused(await calling);
      await disk.end();
      expectAnswered(await callUntilServed(agent, "outcome after"));
    });
    const records = await reader.recordsOf((each) => each === "outcome");
    const [first] = records.filter(({ effect }) => effect === "dispatched");
    expect(effectsOf(records, first?.action.id)).to.deep.equal(["dispatched", "unknown"]);
    await expectSound("outcome", 2);
  });

  it("says nothing of an unknown id while it cannot be recorded who asked [S4] [S65]", async () => {
    const ask = async (): Promise<number> => {
      const path = `/admin/v1/approvals/apr_${"0".repeat(32)}`;
      return (await fetch(gateway.adminUrl + path, { headers: { "x-api-key": siteKey } })).status;
    };
    expect(await ask()).to.equal(404);
    await disk.begin("sync", EIO, "/state/");
    expect([await ask(), await ask()]).to.deep.equal([503, 503]);
    await disk.end();
    await withAgent("asked", async (agent) => expectAnswered(await callUntilServed(agent, "asked after")));
    expect(await ask()).to.equal(404);
  });

  async function withAgent(label: string, use: (agent: Agent) => Promise<void>): Promise<void> {
    const agent = new Agent(gateway.url, siteKey, label);
    try {
      await use(agent);
    } finally {
      await agent.hangUp();
    }
  }

  async function marksWith(label: string): Promise<readonly string[]> {
    const calls = (await upstream.calls()).map(({ body }) => /"mark":"([^"]*)"/.exec(body)?.[1] ?? "");
    return calls.filter((mark) => mark.startsWith(`${label} `));
  }

  /** The chain verifies, and every decision to dispatch in this session has one outcome. */
  async function expectSound(label: string, answeredOrSent: number): Promise<void> {
    expect(await reader.verify()).to.include({ ok: true });
    const records = await reader.recordsOf((each) => each === label);
    const ids = records.filter(({ effect }) => effect === "dispatched").map(({ action }) => action.id);
    for (const id of ids) expect(effectsOf(records, id), id).to.have.length(2);
    const unknown = records.filter(({ effect }) => effect === "unknown").length;
    expect(ids.length).to.be.at.least(answeredOrSent);
    expect(records.filter(({ effect }) => effect === "success").length).to.equal(ids.length - unknown);
  }
});

/** Service resumes with the first repair that demand asks for and the disk allows. */
async function callUntilServed(agent: Agent, mark: string): Promise<Answer> {
  for (const until = Date.now() + 60_000; Date.now() < until; await sleep(200)) {
    const answer = await agent.call("echo", { mark });
    if (answer.status === 200) return answer;
    expectRefused(answer);
  }
  throw new Error(`expected service to resume within 60 s of the repair of the disk for \`${mark}\``);
}

function expectAnswered(answer: Answer): void {
  expect([answer.status, answer.result?.isError ?? false, answer.error]).to.deep.equal([200, false, undefined]);
}

function expectRefused(answer: Answer): void {
  expect([answer.status, answer.error?.code, answer.error?.data?.code]).to.deep.equal([
    503,
    1503,
    "EVIDENCE_UNAVAILABLE",
  ]);
}

function effectsOf(records: readonly ActionRecord[], id: string | undefined): readonly string[] {
  return records.filter(({ action }) => action.id === id).map(({ effect }) => effect);
}
