import { execFile } from "node:child_process";
import { createHash } from "node:crypto";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { expect } from "chai";
import type { EvidenceJob } from "../../../core/evidence/evidence-jobs.ts";
import { repositoryRoot } from "../../check/source-tree.ts";
import { Agent } from "../../support/agent.ts";
import { runCommand } from "../../support/command-host.ts";
import { EvidenceReader } from "../../support/evidence-reader.ts";
import { type RunningGateway, startGateway } from "../../support/gateway.ts";
import { LedgerWorld } from "../../support/ledger-world.ts";
import { type Recorder, startRecorder } from "../../support/recorder.ts";
import { roundsOf } from "../../support/rounds.ts";
import { siteConfig, siteFiles, siteKey } from "../../support/site.ts";
import type { Finished } from "../../unit/cli/run.ts";

const operatorKey = "operator-of-acme-0123456789abcdef0123456789";
const foreignKey = "admin-of-globex-0123456789abcdef0123456789ab";
/** Of spring, months before the gateway of these tests starts. */
const oldActions = roundsOf(200, 5_000);
const sessions = 20;

describe("evidence prune and erase while the gateway serves", () => {
  let folder: string;
  let upstream: Recorder;
  let gateway: RunningGateway;

  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), "prune-serving-"));
    upstream = await startRecorder();
    const world = LedgerWorld.at(join(folder, "data"));
    await world.open();
    for (let count = 0; count < oldActions; count += sessions) {
      await Promise.all(Array.from({ length: sessions }, (_, at) => world.act({}, `s${at}`)));
    }
    await world.close();
    gateway = await start();
  });

  afterEach(async () => {
    await gateway.stop();
    await upstream.stop();
    await rm(folder, { recursive: true, force: true });
  });

  function start(evidence = "{}", ownProcess = false): Promise<RunningGateway> {
    const config = siteConfig({ remoteUrl: upstream.url, role: "admin", more: `evidence: ${evidence}` });
    const keys = [
      ["ops", "acme", "operator", operatorKey],
      ["eve", "globex", "admin", foreignKey],
    ].map(([id, tenant, role, key]) => {
      const digest = createHash("sha256").update(String(key)).digest("hex");
      return `{ id: ${id}, tenant: ${tenant}, role: ${role}, key_hash: "sha256:${digest}" }`;
    });
    return startGateway({
      alone: true,
      config: config.replace("keys: [", `keys: [${keys.join(", ")}, `),
      files: siteFiles(),
      folder,
      ownProcess,
    });
  }

  function run(args: readonly string[], key = siteKey): Promise<Finished> {
    return runCommand(["evidence", ...args, "--admin", gateway.adminUrl], { GATEWAY_API_KEY: key });
  }

  async function post(path: string, body: object, key = siteKey): Promise<{ status: number; body: EvidenceJob }> {
    const response = await fetch(`${gateway.adminUrl}/admin/v1/evidence/${path}`, {
      method: "POST",
      headers: { "x-api-key": key, "content-type": "application/json" },
      body: JSON.stringify(body),
    });
    return { status: response.status, body: (await response.json()) as EvidenceJob };
  }

  /** Calls in four sessions, until what is returned is called; that resolves with the number of calls. */
  function keepCalling(): () => Promise<number> {
    let isOver = false;
    let calls = 0;
    const callers = Array.from({ length: 4 }, async (_, at) => {
      const agent = new Agent(gateway.url, siteKey, `live${at}`);
      while (!isOver) {
        const { status, result } = await agent.call("echo", { text: String(calls++) });
        expect([status, result?.isError ?? false]).to.deep.equal([200, false]);
      }
      await agent.hangUp();
    });
    return async () => {
      isOver = true;
      await Promise.all(callers);
      return calls;
    };
  }

  /** Both verifiers accept what is left: the data folder of the stopped gateway, and a session exported before. */
  async function expectVerified(): Promise<void> {
    const reader = new EvidenceReader(gateway.adminUrl, siteKey);
    expect(await reader.verify()).to.include({ ok: true });
    const young = (await reader.sessions()).find(({ label }) => label === "live0");
    const bundle = join(folder, "bundle.jsonl");
    expect((await run(["export", young?.id ?? "", "--file", bundle])).code).to.equal(0);
    const ours = await runCommand(["evidence", "verify", bundle, "--json"]);
    expect(JSON.parse(ours.stdout)).to.include({ verdict: "self-attested", first_bad: null });
    expect(JSON.parse(await python(bundle))).to.include({ verdict: "self-attested", first_bad: null });
    await gateway.stop();
    const whole = await runCommand(["evidence", "verify", "--data", join(folder, "data"), "--tenant", "acme"]);
    expect([whole.code, whole.stdout]).to.deep.equal([10, whole.stdout]);
    gateway = await start();
  }

  const before = "2026-06-01T00:00:00.000Z";

  it("refuses no call, records every one, and both verifiers accept the rest", async () => {
    const stop = keepCalling();
    await sleep(50);
    const { code, stdout, stderr } = await run(["prune", "--before", before, "--reason", "half a year"]);
    const calls = await stop();
    expect([code, stdout], stderr).to.deep.equal([
      0,
      `acme: pruned ${2 * oldActions} records, the chain begins at record ${2 * oldActions + 1}\n`,
    ]);
    expect(stderr).to.include("`POST /admin/v1/evidence/verify` checks the rest");
    expect((await upstream.calls()).length).to.equal(calls);
    const reader = new EvidenceReader(gateway.adminUrl, siteKey);
    const recorded = await reader.recordsOf((label) => label?.startsWith("live") === true);
    expect(recorded.filter(({ effect }) => effect === "success")).to.have.length(calls);
    expect((await reader.sessions()).map(({ label }) => label)).to.not.include("s0");
    const again = await run(["prune", "--before", before, "--json"]);
    expect(JSON.parse(again.stdout)).to.deep.equal({
      tenant: "acme",
      before,
      records: 0,
      first_kept: 2 * oldActions + 1,
    });
    await expectVerified();
  });

  it("erases meanwhile, so that no later export discloses it", async () => {
    const agent = new Agent(gateway.url, siteKey, "anna");
    await agent.call("echo", { patient: "Anna" });
    const reader = new EvidenceReader(gateway.adminUrl, siteKey);
    const { id } = (await reader.sessions()).find(({ label }) => label === "anna") ?? { id: "" };
    const stop = keepCalling();
    const erased = await run(["erase", "--session", id, "--field", "*", "--reason", "asked"]);
    await stop();
    expect(erased.stdout, erased.stderr).to.match(/^acme: erased [1-9]\d* fields in 2 records\n$/);
    const bundle = await fetch(`${gateway.adminUrl}/admin/v1/evidence/sessions/${id}/export`, {
      headers: { "x-api-key": siteKey },
    });
    expect(await bundle.text()).to.not.include("Anna");
    expect((await run(["erase", "--seq", "1", "--field", "arguments.none", "--reason", "asked"])).code).to.equal(1);
    await agent.hangUp();
    await expectVerified();
  });

  it("is for admins of the tenant, one job at a time, with clear refusals", async () => {
    const stop = keepCalling();
    expect((await run(["prune", "--before", before], operatorKey)).stderr).to.equal(
      "gateway: this role may not do that: `operator` lacks `evidence.prune`\n",
    );
    expect((await run(["erase", "--seq", "1", "--field", "*", "--reason", "asked"], operatorKey)).stderr).to.equal(
      "gateway: this role may not do that: `operator` lacks `evidence.erase`\n",
    );
    // Its own chain, which holds nothing so old; no session of another tenant is known to it.
    expect((await run(["prune", "--before", before, "--json"], foreignKey)).stdout).to.include('"records":0');
    const { id } = (await new EvidenceReader(gateway.adminUrl, siteKey).sessions())[0] ?? { id: "" };
    const erase = { session: id, fields: ["*"], reason: "asked" };
    expect((await post("erase", erase, foreignKey)).status).to.equal(404);
    const both = await Promise.all([post("prune", { before }), post("prune", { before })]);
    expect(both.map(({ status }) => status)).to.have.members([202, 409]);
    for (const body of [
      { before: "yesterday" },
      { before: "2026-02-30T00:00:00Z" },
      { before: "2999-01-01T00:00:00Z" },
      {},
    ]) {
      expect((await post("prune", body)).status, JSON.stringify(body)).to.equal(400);
    }
    const pattern = ["*"];
    for (const body of [
      { fields: pattern, reason: "asked" },
      { ...erase, seq: 1 },
      { seq: 1, fields: [], reason: "asked" },
      { seq: 1, fields: pattern },
      { seq: 1, fields: ["secret"], reason: "asked" },
    ]) {
      expect((await post("erase", body)).status, JSON.stringify(body)).to.equal(400);
    }
    await stop();
  });

  it("prunes by itself what is older than `evidence.retention_days`, and nothing without it", async () => {
    expect((await new EvidenceReader(gateway.adminUrl, siteKey).verify()).firstKept).to.equal(undefined);
    await gateway.stop();
    gateway = await start("{ retention_days: 30 }");
    const stop = keepCalling();
    const reader = new EvidenceReader(gateway.adminUrl, siteKey);
    while ((await reader.sessions()).some(({ label }) => label === "s0")) await sleep(50);
    await stop();
    expect(await reader.verify()).to.include({ ok: true, firstKept: 2 * oldActions + 1 });
    await expectVerified();
  });

  for (let round = 1; round <= roundsOf(1, 20); round++) {
    it(`survives kill -9 at any moment: it starts, verifies, and the next prune ends it (${round})`, async () => {
      await gateway.stop();
      gateway = await start("{}", true);
      const agent = new Agent(gateway.url, siteKey, "live0");
      await agent.call("echo", { text: "first" });
      expect((await post("prune", { before })).status).to.equal(202);
      await sleep(Math.random() * roundsOf(600, 4_000));
      await gateway.kill9();
      await agent.hangUp();
      gateway = await start();
      expect(await new EvidenceReader(gateway.adminUrl, siteKey).verify()).to.include({ ok: true });
      const back = new Agent(gateway.url, siteKey, "live0");
      expect((await back.call("echo", { text: "again" })).status).to.equal(200);
      await back.hangUp();
      const { code, stdout, stderr } = await run(["prune", "--before", before, "--json"]);
      expect(code, stderr).to.equal(0);
      expect(JSON.parse(stdout)).to.include({ first_kept: 2 * oldActions + 1 });
      await expectVerified();
    });
  }
});

/** What the verifier that anyone can read says of a bundle. */
function python(bundle: string): Promise<string> {
  return new Promise((resolve) => {
    const program = join(repositoryRoot, "sdk", "evidence", "verify.py");
    execFile("python3", [program, bundle], { timeout: 60_000 }, (_error, stdout) => resolve(stdout));
  });
}
