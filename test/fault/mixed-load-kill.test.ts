import { cp } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { expect } from "chai";
import { sessionScope } from "../../core/action/principal.ts";
import { recordKey } from "../../core/evidence/record/key-space.ts";
import type { ActionRecord, EvidenceRecord } from "../../core/evidence/record/record.ts";
import { openStore } from "../../core/store/open.ts";
import { Acknowledged, findLosses, findOwed, Receipts, Settlement } from "../support/acknowledged.ts";
import { runCommand } from "../support/command-host.ts";
import { fuzzSeed, pick, randomFrom } from "../support/fuzz.ts";
import { GatewayGroup } from "../support/gateway-group.ts";
import { LoadClient, loadSteps, whenAllEnd } from "../support/load-client.ts";
import { LoadWorld, loadEnv, loadTenant, recordsFrom } from "../support/load-world.ts";
import { drawMoment, type KillMoment, type LoadMemory, MixedLoad } from "../support/mixed-load.ts";
import { RestartCheck } from "../support/restart-check.ts";
import { roundsOf } from "../support/rounds.ts";
import { exportVerified } from "../support/verified-bundle.ts";

/** How often a gateway is killed, and how many of them at once; `KILL_ROUNDS` and `KILL_GROUP` override. */
const rounds = Number(process.env.KILL_ROUNDS ?? roundsOf(12, 1_000));
const groupSize = Number(process.env.KILL_GROUP ?? 6);
/** The part of the kills that come amid a start, and when, in parts of the last whole one: the first loads modules. */
const startShare = 0.25;
const [startFrom, startTo] = [0.6, 1.05];
/** Bundles are exported, and verified by both verifiers, after so many turns. */
const exportTurns = 20;
/** Exit code of a verification without a witness. */
const selfAttested = 10;

/** Right after a backup was complete. */
const afterBackup: KillMoment = {
  step: "backup",
  on: "answered",
  count: 1,
  delayMs: 0,
  maxAnswers: Number.POSITIVE_INFINITY,
};

/** What one gateway acknowledged, and the records that it left, with those of starts that were killed before it. */
interface Left {
  readonly acknowledged: Acknowledged;
  readonly records: readonly EvidenceRecord[];
}

/** One folder, from gateway to gateway. */
interface Lineage {
  readonly world: LoadWorld;
  readonly memory: LoadMemory;
  /** The number of the first record that was not read yet. */
  next: number;
  /** By the last gateway that was killed under load. */
  left: Left;
  /** By the one that serves. */
  acknowledged: Acknowledged;
}

/**
 * The process ends, the disk does not: what was written stays, synced or not. What a power cut leaves is the affair of
 * `attack/admin-kill` and `fault/evidence-disk`.
 */
describe(`kill -9 under mixed load, ${rounds} times (seed ${fuzzSeed})`, () => {
  const random = randomFrom(fuzzSeed);
  const faults = { chain: [] as string[], outcome: [] as string[], upstream: [] as string[], start: [] as string[] };
  const kills = { "amid a start": 0, "right after a start": 0, "under load": 0 };
  const inFlight = new Map<string, number>();
  const answered = new Map<string, number>();
  const lineages: Lineage[] = [];
  let group: GatewayGroup | null = null;
  let lastStartMs = 0;
  /** By the gateway that did most. */
  let fullest: Left = { acknowledged: new Acknowledged(), records: [] };

  before(async function () {
    this.timeout(120_000 + rounds * 20_000);
    for (let at = 0; at < groupSize; at++) lineages.push(await beginLineage());
    for (let turn = 1; killCount() < rounds && faultCount() === 0; turn++) {
      if (turn > 1 && random() < startShare) await killStart();
      else await killLoad(`r${turn}`, pick(lineages, random), drawMoment(random), turn % exportTurns === 0);
    }
    await killLoad("last", first(), afterBackup, false);
    await start();
    await whenAllEnd(lineages.map(checkStart));
    await exportBundle(first(), "end");
    await kill9();
    for (const each of lineages) await readWhatIsLeft(each);
  });

  after(async () => {
    if (process.env.TEST_ROUNDS === "long") process.stdout.write(`${renderSummary()}\n`);
    await group?.kill9();
    for (const { world } of lineages) await world.stop();
  });

  it("comes to serve after each kill, also where a start was killed, with the same stops, reviews, tickets and backups [S45, S46]", () => {
    expect(faults.start).to.deep.equal([]);
    expect(killCount()).to.be.least(rounds);
  });

  it("has each acknowledged answer and change on record, once [S45, S65]", () => {
    expect(faults.chain).to.deep.equal([]);
  });

  it("records what was in flight as unknown, and every other outcome once", () => {
    expect(faults.outcome).to.deep.equal([]);
    expect(sum(({ settlement }) => settlement.unknownCount)).to.be.above(0);
  });

  it("runs an approved call at most once, a ticket's no more often than it says, and nothing that was refused [S44, S45]", () => {
    expect(faults.upstream).to.deep.equal([]);
    expect(sum(({ receipts }) => receipts.total)).to.be.above(rounds);
  });

  it("leaves a folder that verifies, and acknowledged backups that restore [S64]", async () => {
    const { world, memory } = first();
    expect(await verify(await world.copy("copy"))).to.equal(selfAttested);
    const [name = ""] = memory.backups.slice(-1);
    const data = join(world.folder, "restored");
    await cp(join(world.folder, "data", "keys"), join(data, "keys"), { recursive: true });
    const file = join(world.folder, "backups", name);
    const { code, stderr } = await runCommand(["restore", file, "--data", data, "--by", "ops"]);
    // The mark beside the data folder is all that it has to say.
    expect([code, stderr.replace(/^gateway: the mark stays as it was, .*\n/, "")]).to.deep.equal([0, ""]);
    expect(await verify(data)).to.equal(selfAttested);
    expect(await recordsFrom(data, 0)).to.satisfy((records: readonly EvidenceRecord[]) =>
      records.some((record) => "detail" in record && record.detail.backup === name),
    );
  });

  describe("its own checks", () => {
    it("see each record that is lost", () => {
      const { acknowledged, records } = fullest;
      const owed = findOwed(acknowledged, records);
      expect(owed.length).to.be.above(20);
      for (const { record, of } of owed) {
        const rest = records.filter((each) => each !== record);
        expect(findLosses(acknowledged, rest), `${of} without record ${record.seq}`).to.not.deep.equal([]);
      }
    });

    it("see a record that is gone from the store", async () => {
      const { world, left } = first();
      const dir = await world.copy("copy");
      const begin = left.records[0]?.seq ?? 0;
      const lost = left.records.at(-2)?.seq ?? 0;
      expect(findGap(await recordsFrom(dir, begin), begin)).to.equal(undefined);
      const store = await openStore({ dir, enabled: true });
      await store.del(recordKey(loadTenant, lost));
      await store.close();
      expect(findGap(await recordsFrom(dir, begin), begin)).to.contain(`${lost}`);
    });

    it("see a call that arrived twice, though it was refused, or beside the chain", () => {
      const receipts = new Receipts();
      receipts.limit("a refused", 0);
      expect(receipts.add(["a once", "a twice"])).to.deep.equal([]);
      expect(receipts.add(["a twice", "a refused"])).to.have.length(2);
      expect(receipts.findUndecided(new Map([["a", 4]]))).to.deep.equal([]);
      receipts.add(["a more"]);
      expect(receipts.findUndecided(new Map([["a", 4]]))).to.have.length(1);
    });

    it("see an outcome that is missing, known where nobody can know it, or there twice", () => {
      const { records } = fullest;
      const actions = records.filter((record): record is ActionRecord => "action" in record);
      const dispatched = actions.filter(({ effect }) => effect === "dispatched");
      const ids = new Set(dispatched.map(({ action }) => action.id));
      const outcomes = actions.filter(({ kind, action }) => kind === "outcome" && ids.has(action.id));
      expect(faultsAfter(dispatched, outcomes.slice(1))).to.contain("has no outcome");
      expect(faultsAfter(dispatched, outcomes)).to.contain("its outcome is `success`");
      expect(faultsAfter([...dispatched, ...outcomes], outcomes.slice(0, 1))).to.contain("beside its one");
    });
  });

  async function beginLineage(): Promise<Lineage> {
    const memory: LoadMemory = {
      receipts: new Receipts(),
      settlement: new Settlement(),
      suspects: [
        { person: "suspect", scope: "session", subject: "", isStopped: false, change: null },
        { person: "accused", scope: "principal", subject: "", isStopped: false, change: null },
      ],
      held: [],
      tickets: [],
      past: [],
      backups: [],
    };
    const left = { acknowledged: new Acknowledged(), records: [] };
    return { world: await LoadWorld.create(), memory, next: 0, left, acknowledged: new Acknowledged() };
  }

  /** Starts all of them, one after the other. */
  async function start(): Promise<void> {
    const begun = performance.now();
    group = new GatewayGroup(loadEnv);
    for (const { world } of lineages) await world.start(group);
    lastStartMs = performance.now() - begun;
  }

  async function kill9(): Promise<void> {
    for (const { world } of lineages) world.noteKill();
    await group?.kill9();
  }

  /** Kills them while they start: some serve by then, one starts, of others nothing is there yet. */
  async function killStart(): Promise<void> {
    const killed = new GatewayGroup(loadEnv);
    let begun = 0;
    let served = 0;
    const starting = (async () => {
      for (const { world } of lineages) {
        begun++;
        await killed.start(world.configPath);
        served++;
      }
    })();
    // A start that fails by itself fails before the kill.
    const ended = starting.then(
      () => undefined,
      (error: Error) => (killed.isKilled ? undefined : error),
    );
    await sleep((startFrom + random() * (startTo - startFrom)) * lastStartMs);
    await killed.kill9();
    const failed = await ended;
    if (failed !== undefined) throw failed;
    kills["amid a start"] += begun - served;
    kills["right after a start"] += served;
  }

  /** Has them compared with those before, puts them under load, and kills them at a moment of `leader`. */
  async function killLoad(name: string, leader: Lineage, moment: KillMoment, isExported: boolean): Promise<void> {
    await start();
    await whenAllEnd(lineages.map(checkStart));
    if (isExported) await exportBundle(leader, `${name}-bundle`);
    const loads = lineages.map(({ world, memory, acknowledged }, at) => {
      return new MixedLoad(world, memory, acknowledged, { random, name: `${name}.${at}`, moment });
    });
    const running = loads.map((load) => load.run());
    const leading = loads[lineages.indexOf(leader)] as MixedLoad;
    try {
      // They end before the moment only where one of them fails.
      await Promise.race([leading.reachMoment(), Promise.all(running)]);
    } finally {
      for (const step of loads.flatMap((load) => load.inFlight)) add(inFlight, step, 1);
      await kill9();
    }
    await whenAllEnd(running);
    for (const load of loads) for (const step of loadSteps) add(answered, step, load.count(step, "answered"));
    kills["under load"] += lineages.length;
    for (const each of lineages) await readWhatIsLeft(each);
  }

  async function checkStart(lineage: Lineage): Promise<void> {
    const { world, memory, left } = lineage;
    lineage.acknowledged = new Acknowledged();
    faults.start.push(...(await new RestartCheck(world, memory, left, lineage.acknowledged).run()));
  }

  /** Compares what a kill left on the disk with what was acknowledged, and with the upstream's own log. */
  async function readWhatIsLeft(lineage: Lineage): Promise<void> {
    const { world, memory, next, acknowledged } = lineage;
    const { receipts, settlement } = memory;
    faults.upstream.push(...receipts.add(await world.newReceipts()));
    const records = await recordsFrom(await world.copy("copy"), next);
    const gap = findGap(records, next);
    faults.chain.push(...(gap === undefined ? [] : [gap]), ...findLosses(acknowledged, records));
    faults.outcome.push(...settlement.add(records));
    faults.upstream.push(...receipts.findUndecided(settlement.dispatched));
    lineage.next += records.length;
    lineage.left = { acknowledged, records };
    const owed = findOwed(acknowledged, records).length;
    if (owed > findOwed(fullest.acknowledged, fullest.records).length) fullest = lineage.left;
  }

  /** Has both verifiers verify the bundle of a session. */
  async function exportBundle({ world, acknowledged }: Lineage, label: string): Promise<void> {
    const client = new LoadClient(world, acknowledged);
    await client.agent("reader", label)("call", "read_echo", { mark: `${label} 0` });
    await client.hangUp();
    const { id } = sessionScope("http", loadTenant, world.principal("reader"), label);
    await exportVerified(world.gateway.adminUrl, world.key("rita"), id);
  }

  function first(): Lineage {
    return lineages[0] as Lineage;
  }

  function killCount(): number {
    return Object.values(kills).reduce((total, count) => total + count, 0);
  }

  function faultCount(): number {
    return Object.values(faults).flat().length;
  }

  function sum(of: (memory: LoadMemory) => number): number {
    return lineages.reduce((total, { memory }) => total + of(memory), 0);
  }

  function renderSummary(): string {
    const rows = [
      ["kills", killCount()],
      ...Object.entries(kills).map(([phase, count]) => [`killed ${phase}`, count]),
      ...loadSteps.map((step) => [`killed amid: ${step}`, inFlight.get(step) ?? 0]),
      ...loadSteps.map((step) => [`acknowledged: ${step}`, answered.get(step) ?? 0]),
      ["records", lineages.reduce((total, { next }) => total + next, 0)],
      ["outcomes unknown", sum(({ settlement }) => settlement.unknownCount)],
      ["executions", sum(({ receipts }) => receipts.total)],
      ["longest start, ms", Math.round(Math.max(...lineages.map(({ world }) => world.longestStartMs)))],
      ["faults", faultCount()],
    ] as const;
    return rows.map(([name, value]) => `  ${String(name).padEnd(28)}${String(value).padStart(8)}`).join("\n");
  }
});

/** The exit code of `gateway evidence verify` on a data folder. */
async function verify(data: string): Promise<number | null> {
  return (await runCommand(["evidence", "verify", "--data", data])).code;
}

/** Describes the first record from `first` on that is missing; undefined where none is. */
function findGap(records: readonly EvidenceRecord[], first: number): string | undefined {
  const at = records.findIndex(({ seq }, index) => seq !== first + index);
  return at === -1 ? undefined : `expected record ${first + at}, got ${records[at]?.seq}`;
}

/** Describes what does not fit, where a kill came between the records of two gateways. */
function faultsAfter(first: readonly EvidenceRecord[], second: readonly EvidenceRecord[]): string {
  const settlement = new Settlement();
  settlement.add(first);
  return settlement.add(second).join("\n");
}

function add(counts: Map<string, number>, name: string, count: number): void {
  counts.set(name, (counts.get(name) ?? 0) + count);
}
