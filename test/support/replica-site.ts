import { setTimeout as sleep } from "node:timers/promises";
import { expect } from "chai";
import type { ActionRecord, EvidenceRecord } from "../../core/evidence/record/record.ts";
import { Agent } from "./agent.ts";
import { EvidenceReader } from "./evidence-reader.ts";
import type { PostgresOptions } from "./postgresql.ts";
import { type Recorder, startRecorder } from "./recorder.ts";
import { ReplicaGroup } from "./replica-group.ts";
import { siteConfig, siteFiles, siteKey } from "./site.ts";
import { exportVerified } from "./verified-bundle.ts";

/** What became of a call, as its agent saw it. */
export interface Sent {
  /** In its arguments, and the label of its session: the upstream's log and the chain are found by it. */
  readonly mark: string;
  readonly sentMs: number;
  readonly endedMs: number;
  /** `none`: no whole answer came. Else the code of the refusal. */
  readonly end: "answered" | "none" | (string & {});
  /** Why no answer came. */
  readonly cause: string;
}

/** What is not on this machine's loopback, or not in a folder of its own. */
interface Surroundings {
  readonly postgres?: PostgresOptions;
  readonly upstreamHost?: string;
  /** The addresses at which clients reach the replicas. */
  readonly hosts?: readonly string[];
}

const deadlineMs = 90_000;

/** Replicas of a gateway before one recording upstream, whose tool `echo` is allowed. */
export class ReplicaSite {
  readonly upstream: Recorder;
  readonly group: ReplicaGroup;

  private constructor(upstream: Recorder, group: ReplicaGroup) {
    this.upstream = upstream;
    this.group = group;
  }

  /** Starts the replicas, and returns once the first of them serves. */
  static async start(leaseMs: number, count = 3, over: { readonly databaseUrl?: string } = {}): Promise<ReplicaSite> {
    const site = await ReplicaSite.create(leaseMs);
    await Promise.all(Array.from({ length: count }, (_, index) => site.group.start(index, over)));
    await site.serves();
    return site;
  }

  /** Starts what the replicas need, and none of them. */
  static async create(
    leaseMs: number,
    { postgres = {}, upstreamHost, hosts }: Surroundings = {},
  ): Promise<ReplicaSite> {
    const upstream = await startRecorder(upstreamHost);
    const open = hosts === undefined ? {} : { hosts };
    const config = siteConfig({ remoteUrl: upstream.url, ...open, more: "sessions: { risk: { kill_at: 0 } }" });
    return new ReplicaSite(upstream, await ReplicaGroup.create({ config, files: siteFiles(), leaseMs, postgres }));
  }

  url(index: number): string {
    return this.group.member(index).url;
  }

  reader(index: number): EvidenceReader {
    return new EvidenceReader(this.group.member(index).adminUrl, siteKey);
  }

  /** Calls `echo` once, on a new connection. `more`: further arguments. */
  async call(url: string, mark: string, more: object = {}): Promise<Sent> {
    const sentMs = performance.now();
    let cause = "";
    const agent = new Agent(url, siteKey, mark);
    const end = await agent.call("echo", { mark, ...more }).then(
      ({ status, result, error }) => {
        if (status === 200 && error === undefined && result?.isError !== true) return "answered";
        return error?.data?.code ?? `status ${status}: ${JSON.stringify(result ?? error)}`;
      },
      (error: Error & { readonly code?: string }) => {
        cause = `${error.code ?? ""} ${error.message}`;
        return "none";
      },
    );
    await agent.hangUp();
    return { mark, sentMs, endedMs: performance.now(), end, cause };
  }

  /** Calls until a call is answered; returns what became of each. */
  async serves(url = this.url(0), prefix = `serves-${performance.now()}`): Promise<readonly Sent[]> {
    const sent: Sent[] = [];
    await eventually("a call that is answered", async () => {
      const last = await this.call(url, `${prefix}-${sent.length}`);
      sent.push(last);
      return last.end === "answered";
    });
    return sent;
  }

  /** The marks of the calls that reached the upstream, in order. */
  async reached(): Promise<readonly string[]> {
    return (await this.upstream.calls()).map(({ body }) => /"mark":"([^"]*)"/.exec(body)?.[1] ?? body);
  }

  /** At each replica the chain verifies, and none of them knows less of it than the one before. */
  async expectOneChain(): Promise<void> {
    let known = 0;
    for (const index of this.group.members.keys()) {
      const report = await this.reader(index).verify();
      expect(report, `replica ${index}`).to.include({ ok: true });
      expect(report.records, `replica ${index}`).to.be.at.least(known);
      known = report.records;
    }
    expect(known).to.be.above(0);
  }

  /**
   * The upstream was called at most once for each; what was answered was called and is recorded with its outcome; what was
   * dispatched is recorded with one outcome; what was refused was not called.
   */
  async expectSettled(all: readonly Sent[], index = 0): Promise<readonly ActionRecord[]> {
    const marks = new Set(all.map(({ mark }) => mark));
    const records = await this.reader(index).recordsOf((label) => label !== undefined && marks.has(label));
    const reached = await this.reached();
    for (const { mark, end } of all) {
      const own = records.filter(({ session }) => session.label === mark);
      const effects = own.map(({ effect }) => effect);
      const calls = reached.filter((each) => each === mark).length;
      expect(calls, `calls of ${mark}, which was ${end}`).to.be.at.most(1);
      if (calls === 1) expect(effects[0], `decision on ${mark}`).to.equal("dispatched");
      if (end === "answered") expect([calls, effects], mark).to.deep.equal([1, ["dispatched", "success"]]);
      if (effects[0] === "dispatched") {
        expect(effects, mark).to.have.length(2);
        expect(effects[1], mark).to.be.oneOf(["success", "error", "unknown"]);
      }
    }
    return records;
  }

  /** The session of a call is exported at a replica, and both verifiers find it sound. Returns its records. */
  async expectVerified(mark: string, index = 0): Promise<readonly EvidenceRecord[]> {
    const session = (await this.reader(index).sessions()).find(({ label }) => label === mark);
    if (session === undefined) throw new Error(`expected a session ${mark}`);
    return exportVerified(this.group.member(index).adminUrl, siteKey, session.id);
  }

  async stop(): Promise<void> {
    await this.group.stop();
    await this.upstream.stop();
  }
}

/** Agents that call one after the other, each call on a new connection, until they are told to stop. */
export class SteadyCalls {
  readonly sent: Sent[] = [];
  readonly #working: Promise<unknown>;
  readonly #underWay = new Map<number, string>();
  #isOver = false;

  constructor(site: ReplicaSite, url: string, prefix: string, agents: number) {
    const work = async (agent: number): Promise<void> => {
      for (let turn = 0; !this.#isOver; turn++) {
        const mark = `${prefix}-${agent}-${turn}`;
        this.#underWay.set(agent, mark);
        const last = await site.call(url, mark);
        this.#underWay.delete(agent);
        this.sent.push(last);
        // A list of sessions is a page of 500.
        await sleep(100);
      }
    };
    this.#working = Promise.all(Array.from({ length: agents }, (_, agent) => work(agent)));
  }

  /** Resolves once so many more calls were answered that were sent from now on. */
  async answered(count: number): Promise<readonly Sent[]> {
    const fromMs = performance.now();
    const fresh = (): readonly Sent[] => this.sent.filter(({ sentMs, end }) => sentMs >= fromMs && end === "answered");
    await eventually(`${count} more calls to be answered`, () => fresh().length >= count);
    return fresh();
  }

  /** Resolves once every call that is under way has ended. */
  async settled(): Promise<void> {
    const before = [...this.#underWay];
    await eventually("calls to end", () => before.every(([agent, mark]) => this.#underWay.get(agent) !== mark));
  }

  async end(): Promise<readonly Sent[]> {
    this.#isOver = true;
    await this.#working;
    return this.sent;
  }
}

/** Resolves once something is so. Rejects where it takes far longer than it may even on a slow machine. */
export async function eventually(what: string, isSo: () => boolean | Promise<boolean>): Promise<void> {
  for (const untilMs = performance.now() + deadlineMs; !(await isSo()); await sleep(20)) {
    if (performance.now() > untilMs) throw new Error(`expected ${what} within ${deadlineMs} ms`);
  }
}

/** Prints the time for which nobody was answered: how long that is differs from machine to machine. */
export function sayOutage(what: string, fromMs: number, first: Sent | undefined, leaseMs: number): void {
  say(`${what}: without service for ${Math.round((first?.endedMs ?? Number.NaN) - fromMs)} ms, lease_ms ${leaseMs}`);
}

/** Prints a line for whoever runs the test. */
export function say(line: string): void {
  process.stdout.write(`      ${line}\n`);
}
