import { mkdtemp, readdir, rm } from "node:fs/promises";
import { constants, tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { expect } from "chai";
import type { EventRecord } from "../../core/evidence/record/record.ts";
import { Agent } from "../support/agent.ts";
import { DiskFault } from "../support/disk-fault.ts";
import { EvidenceReader } from "../support/evidence-reader.ts";
import { type RunningGateway, startGateway } from "../support/gateway.ts";
import { KeyDesk } from "../support/key-rotation.ts";
import { LedgerWorld } from "../support/ledger-world.ts";
import { type Recorder, startRecorder } from "../support/recorder.ts";
import { roundsOf } from "../support/rounds.ts";
import { siteConfig, siteFiles, siteKey } from "../support/site.ts";

const { ENOSPC, EIO, EACCES } = constants.errno;
/** How often something is killed or damaged. */
const rounds = roundsOf(3, 50);
const agents = 8;

type Fault = Parameters<DiskFault["begin"]>;
const faults: readonly (readonly [string, Fault])[] = [
  ["the key folder takes no new file", ["open", EACCES, "/keys/"]],
  ["the key folder's disk is full", ["write", ENOSPC, "/keys/"]],
  ["a new key cannot be synced", ["sync", EIO, "/keys/"]],
  ["the store's disk is full", ["write", ENOSPC, "/state/"]],
];

let folder: string;
let upstream: Recorder;
let gateway: RunningGateway;
let disk: DiskFault;

function start(): Promise<RunningGateway> {
  const config = siteConfig({ remoteUrl: upstream.url, role: "admin", more: "log: { level: warn }" });
  return startGateway({ folder, config, files: siteFiles(), env: disk.env });
}

function desk(): KeyDesk {
  return new KeyDesk(gateway.adminUrl, siteKey);
}

function idsOf(keys: readonly { readonly key_id: string }[]): readonly string[] {
  return keys.map(({ key_id: id }) => id);
}

/** In each suite, because a hook outside of any runs for the tests of every file. */
function inOwnWorld(): void {
  before(async () => {
    folder = await mkdtemp(join(tmpdir(), "gateway-rotation-"));
    disk = await DiskFault.compile(folder);
    upstream = await startRecorder();
  });
  after(async () => {
    await upstream.stop();
    await rm(folder, { recursive: true });
  });
}

describe("a rotation that the disk refuses", () => {
  inOwnWorld();

  before(async () => {
    gateway = await start();
  });
  afterEach(() => disk.end());
  after(() => gateway.stop());

  for (const [what, fault] of faults) {
    it(`leaves the old key in force where ${what}, and works after that [S65]`, async () => {
      const before = await desk().keys();
      await disk.begin(...fault);
      const { status, body } = await desk().rotate();
      expect([status, body.code]).to.deep.equal([503, "EVIDENCE_UNAVAILABLE"]);
      await disk.end();
      await callUntilServed();
      expect(await desk().keys()).to.deep.equal(before);
      const { signers } = await desk().checkpoint();
      expect(signers).to.deep.equal(idsOf(before.keys).slice(-1));
      const { body: made } = await desk().rotate();
      expect(idsOf((await desk().keys()).keys)).to.deep.equal([...idsOf(before.keys), made.key_id]);
      expect(await new EvidenceReader(gateway.adminUrl, siteKey).verify()).to.include({ ok: true });
    });
  }

  it("fills no key folder while no record can be written [S65]", async () => {
    await disk.begin("write", ENOSPC, "/state/");
    expect((await desk().rotate()).status).to.equal(503);
    const files = await readdir(join(folder, "data", "keys"));
    for (let each = 0; each < 20; each++) expect((await desk().rotate()).status).to.equal(503);
    expect(await readdir(join(folder, "data", "keys"))).to.have.members(files);
    await disk.end();
    await callUntilServed();
  });
});

describe("when the gateway is killed while keys change under load", () => {
  inOwnWorld();

  for (let round = 1; round <= rounds; round++) {
    it(`keeps every rotation it answered, with who asked, and at most one more (${round})`, async () => {
      gateway = await start();
      const before = idsOf((await desk().keys()).keys);
      const answered = await rotateUntilKilled();
      await expectOnRecord(answered);
      gateway = await start();
      const after = idsOf((await desk().keys()).keys);
      expect(after.slice(0, before.length + answered.length)).to.deep.equal([...before, ...answered]);
      expect(after.length - before.length - answered.length).to.be.oneOf([0, 1]);
      await callUntilServed();
      expect((await desk().checkpoint()).signers).to.deep.equal(after.slice(-1));
      expect(await new EvidenceReader(gateway.adminUrl, siteKey).verify()).to.include({ ok: true });
      await gateway.kill9();
    });
  }
});

/** Rotates one after the other while agents work, until a kill at a random moment; returns the keys that were answered. */
async function rotateUntilKilled(): Promise<readonly string[]> {
  const killed = new AbortController();
  const working = Promise.all(Array.from({ length: agents }, (_, index) => work(`r${index}`, killed.signal)));
  const made: string[] = [];
  const rotating = (async () => {
    while (!killed.signal.aborted) {
      const answer = await desk()
        .rotate()
        .catch(() => null);
      if (answer === null) return;
      expect(answer.status).to.equal(200);
      made.push(answer.body.key_id);
    }
  })();
  await sleep(50 + Math.random() * 250);
  killed.abort();
  await gateway.kill9();
  await Promise.all([working, rotating]);
  return made;
}

async function work(label: string, killed: AbortSignal): Promise<void> {
  const agent = new Agent(gateway.url, siteKey, label);
  while (!killed.aborted) {
    const answer = await agent.call("echo", {}).catch(() => null);
    if (answer === null) break;
    expect(answer.status).to.equal(200);
  }
  await agent.hangUp();
}

/** Each rotation that was answered follows right after the record of who asked for it. */
async function expectOnRecord(keyIds: readonly string[]): Promise<void> {
  const world = LedgerWorld.at(join(folder, "data"));
  await world.openStore();
  const records = (await world.recordsOf()) as readonly EventRecord[];
  await world.close();
  for (const id of keyIds) {
    const at = records.findIndex(({ kind, detail }) => kind === "key" && detail.new_key_id === id);
    const asked = records[at - 1];
    expect([asked?.kind, asked?.detail.action]).to.deep.equal(["admin", "evidence.rotate"]);
    expect(asked?.detail.principal).to.match(/^principal-v1-[0-9a-f]{64}$/);
  }
}

/** Service resumes with the first repair that demand asks for. */
async function callUntilServed(): Promise<void> {
  const agent = new Agent(gateway.url, siteKey);
  for (const until = Date.now() + 10_000; ; await sleep(200)) {
    const { status } = await agent.call("echo", {});
    if (status === 200) return agent.hangUp();
    if (Date.now() > until) throw new Error("expected service to resume within 10 s");
  }
}
