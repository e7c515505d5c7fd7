import { createHash } from "node:crypto";
import { cp, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { AssertionError, expect } from "chai";
import { principalId, sessionScope } from "../../core/action/principal.ts";
import type { Page } from "../../core/evidence/chain/session-record.ts";
import type { EvidenceJob } from "../../core/evidence/evidence-jobs.ts";
import { everything, findDamage } from "../../core/store/damage.ts";
import { openStore } from "../../core/store/open.ts";
import { Agent, type Answer } from "../support/agent.ts";
import { runCommand } from "../support/command-host.ts";
import { anyBit, dataFiles, firstBit, flip, nameOf, SeededChance } from "../support/flip.ts";
import { type RunningGateway, startGateway } from "../support/gateway.ts";
import { LedgerWorld, rejection } from "../support/ledger-world.ts";
import { type Recorder, startRecorder } from "../support/recorder.ts";
import { roundsOf } from "../support/rounds.ts";
import { siteConfig, siteFiles, siteKey } from "../support/site.ts";
import { until } from "../support/webhook-receiver.ts";

/** Other bits each day. */
const seed = new Date().toISOString().slice(0, 10);
const rounds = roundsOf(4, 100);
const sessions = 4;
const actions = 240;
const cutTime = "2026-06-01T00:00:00.000Z";
/** Sorts after everything in the tables: what it has is in memory alone. */
const strangerKey = "viewer-of-zeta-0123456789abcdef0123456789";
/** Refusals that say that the evidence cannot be read or written. */
const refusals = ["EVIDENCE_UNAVAILABLE", "SESSION_DAMAGED", "NOT_FOUND"];

interface Said {
  readonly status: number;
  readonly body: string;
}

describe(`a gateway whose blocks go bad while it serves (seed ${seed})`, () => {
  let origin: string;
  let upstream: Recorder;
  /** The records of each session as they were written. */
  const written = new Map<string, readonly unknown[]>();
  const ends = new Map<string, number>();

  before(async () => {
    upstream = await startRecorder();
    origin = await mkdtemp(join(tmpdir(), "flip-serving-"));
    const world = LedgerWorld.at(join(origin, "data"));
    await world.open();
    const principal = { id: principalId("acme", digestOf(siteKey)), role: "admin", keyId: "ci" } as const;
    for (let count = 0; count < actions; count++) {
      const session = sessionScope("http", "acme", principal.id, `s${count % sessions}`);
      await world.act({ principal, session });
    }
    for (const { id } of (await world.ledger.sessions("acme", { limit: sessions })).items) {
      written.set(id, (await world.ledger.records("acme", id, { limit: 1_000 })).items);
    }
    await world.close();
  });

  after(async () => {
    await upstream.stop();
    await rm(origin, { recursive: true, force: true });
  });

  for (let round = 1; round <= rounds; round++) {
    it(`says so or loses nothing, and serves the others [S46] (${round})`, async () => {
      const folder = await mkdtemp(join(tmpdir(), "flip-serving-"));
      await cp(join(origin, "data"), join(folder, "data"), { recursive: true });
      const gateway = await start(folder);
      try {
        const end = await endOf(gateway, new SeededChance(`${seed} ${round}`), round % 2 === 0 ? 1 : 8);
        ends.set(end, (ends.get(end) ?? 0) + 1);
      } finally {
        await gateway.kill9();
        await rm(folder, { recursive: true, force: true });
      }
    });
  }

  it("each was kept or found; where the database ended the process, the next start says why", function () {
    if (this.test !== undefined)
      this.test.title += `: ${[...ends].map(([end, count]) => `${count} ${end}`).join(", ")}`;
    expect([...ends.values()].reduce((sum, count) => sum + count, 0)).to.equal(rounds);
  });

  /** The database has assertions about the keys that it reads, and ends the process at some that are damaged. */
  async function endOf(
    gateway: RunningGateway,
    chance: SeededChance,
    count: number,
  ): Promise<"kept" | "found" | "ended"> {
    try {
      return await expectSaid(gateway, chance, count);
    } catch (error) {
      if (error instanceof AssertionError) throw error;
      await until(() => gateway.process.signalCode === "SIGABRT", `the end of the process, after ${error}`);
      const refused = await rejection(openStore({ dir: join(gateway.folder, "data"), enabled: true }));
      expect(refused.message).to.include("is damaged");
      return "ended";
    }
  }

  async function expectSaid(gateway: RunningGateway, chance: SeededChance, count: number): Promise<"kept" | "found"> {
    const state = join(gateway.folder, "data", "state");
    const tables = (await dataFiles(state)).filter(({ path }) => path.endsWith(".ldb"));
    const bits = Array.from({ length: count }, (_, at) => (at % 2 === 0 ? anyBit : firstBit)(tables, chance));
    for (const bit of bits) await flip(bit);
    const damage = await findDamage(state, everything);
    const named = bits.map(nameOf).join("; ");
    await expectServed(gateway);
    await expectCalls(gateway, named);
    await expectReads(gateway, named);
    const verified = await ask(gateway, "POST", "/audit/verify");
    const backup = await backUp(gateway);
    const pruned = await prune(gateway);
    if (damage === undefined) {
      // In the padding of a footer, which nobody reads.
      expect([verified.status, backup, pruned?.state], named).to.deep.equal([200, "complete", "complete"]);
    } else {
      const said = `\`${damage.file}\` of the store is damaged at byte ${damage.offset}`;
      expect(verified, named).to.include({ status: 503 });
      expect(verified.body, named).to.include(said);
      expect(backup, named).to.equal("failed");
      expect(pruned?.fault, named).to.include(said);
      const cause = await rejection(openStore({ dir: join(gateway.folder, "data"), enabled: true }));
      expect(cause.message, named).to.match(/another process holds|is damaged/);
    }
    await expectServed(gateway);
    const { exitCode, signalCode } = gateway.process;
    expect([exitCode, signalCode], named).to.deep.equal([null, null]);
    return damage === undefined ? "kept" : "found";
  }

  /** Another tenant, whose entries are in no file that was damaged, is served. */
  async function expectServed(gateway: RunningGateway): Promise<void> {
    const arrived = (await upstream.calls()).length;
    const agent = new Agent(gateway.url, strangerKey, "elsewhere");
    expect(await agent.call("echo", { text: "hello" })).to.include({ status: 200 });
    await agent.hangUp();
    expect((await upstream.calls()).length).to.equal(arrived + 1);
    expect((await fetch(`${gateway.url}/health`)).status).to.equal(200);
  }

  /** A call that goes on with a stored session is made on record, or refused and not made. */
  async function expectCalls(gateway: RunningGateway, named: string): Promise<void> {
    for (let at = 0; at < sessions; at++) {
      const arrived = (await upstream.calls()).length;
      const agent = new Agent(gateway.url, siteKey, `s${at}`);
      const answer = await agent.call("echo", { text: String(at) });
      await agent.hangUp();
      const isMade = answer.status === 200 && answer.error === undefined && answer.result?.isError !== true;
      if (!isMade) expect(codeOf(answer), `${named}: ${JSON.stringify(answer)}`).to.be.oneOf(refusals);
      expect((await upstream.calls()).length, named).to.equal(arrived + (isMade ? 1 : 0));
    }
  }

  /** Every record that is shown or exported is the one that was written. */
  async function expectReads(gateway: RunningGateway, named: string): Promise<void> {
    for (const [id, records] of written) {
      const listed = await ask(gateway, "GET", `/evidence/sessions/${id}?limit=500`);
      if (listed.status === 200) {
        const { items } = JSON.parse(listed.body) as Page<unknown>;
        expect(items.slice(0, records.length), named).to.deep.equal(JSON.parse(JSON.stringify(records)));
      } else expect(listed.body, named).to.include("EVIDENCE_UNAVAILABLE");
      const exported = await ask(gateway, "GET", `/evidence/sessions/${id}/export`);
      if (exported.status === 200) await expectSound(gateway.folder, exported.body, records.length, named);
      else expect(exported.body, named).to.include("EVIDENCE_UNAVAILABLE");
    }
  }

  /** A bundle is sound, or its verification says what it lacks. */
  async function expectSound(folder: string, bundle: string, atLeast: number, named: string): Promise<void> {
    const file = join(folder, "bundle.jsonl");
    await writeFile(file, bundle);
    const { stdout } = await runCommand(["evidence", "verify", file, "--json"]);
    const { verdict, records } = JSON.parse(stdout) as { readonly verdict: string; readonly records: number };
    if (verdict === "self-attested") expect(records, named).to.be.at.least(atLeast);
    else expect(verdict, named).to.be.oneOf(["incomplete", "invalid"]);
  }

  async function backUp(gateway: RunningGateway): Promise<string> {
    const begun = await ask(gateway, "POST", "/resilience/backup");
    if (begun.status !== 202) return "failed";
    let state = "";
    await until(async () => {
      const { body } = await ask(gateway, "GET", "/resilience/backups");
      state = (JSON.parse(body) as Page<{ readonly state: string }>).items[0]?.state ?? "failed";
      return state === "complete" || state === "failed";
    }, "the backup to end");
    return state;
  }

  async function prune(gateway: RunningGateway): Promise<EvidenceJob | undefined> {
    const begun = await ask(gateway, "POST", "/evidence/prune", { before: cutTime });
    expect(begun.status, begun.body).to.equal(202);
    let job: EvidenceJob | undefined;
    await until(async () => {
      const { body } = await ask(gateway, "GET", "/evidence/jobs");
      [job] = (JSON.parse(body) as Page<EvidenceJob>).items;
      return job?.state === "complete" || job?.state === "failed";
    }, "the prune to end");
    return job;
  }

  function start(folder: string): Promise<RunningGateway> {
    const more = "resilience: { enabled: true, tenant: acme, backup_dir: kept }";
    const config = siteConfig({ remoteUrl: upstream.url, role: "admin", more });
    const stranger = `{ id: zoe, tenant: zeta, role: operator, key_hash: "${digestOf(strangerKey)}" }`;
    return startGateway({
      config: config.replace("keys: [", `keys: [${stranger}, `),
      files: siteFiles(),
      folder,
      ownProcess: true,
    });
  }
});

function digestOf(key: string): string {
  return `sha256:${createHash("sha256").update(key).digest("hex")}`;
}

function codeOf({ error, result }: Answer): string | undefined {
  return error?.data?.code ?? result?.content?.[0]?.text;
}

async function ask(gateway: RunningGateway, method: "GET" | "POST", path: string, body?: object): Promise<Said> {
  const response = await fetch(`${gateway.adminUrl}/admin/v1${path}`, {
    method,
    headers: { "x-api-key": siteKey, "content-type": "application/json" },
    ...(body !== undefined && { body: JSON.stringify(body) }),
  });
  return { status: response.status, body: await response.text() };
}
