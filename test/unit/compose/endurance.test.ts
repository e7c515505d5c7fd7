import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { expect } from "chai";
import type { Json } from "../../../core/action/json.ts";
import { closeParts, openParts, type Parts } from "../../../core/compose/compose.ts";
import { loadConfig } from "../../../core/config/load.ts";
import { openLog } from "../../../core/observe/log.ts";
import type { Dispatch } from "../../../core/road/dispatch.ts";
import { runAction } from "../../../core/road/run.ts";
import { quantile } from "../../bench/quantile.ts";
import { tableHead, tableRow } from "../../bench/table.ts";
import { cpuMs } from "../../support/duration.ts";
import { heapInUse } from "../../support/heap.ts";
import { newAction } from "../../support/ledger-world.ts";
import { roundsOf } from "../../support/rounds.ts";
import { siteConfig, siteFiles } from "../../support/site.ts";

const decisions = roundsOf(4_000, 1_000_000);
const sessions = roundsOf(200, 5_000);
const marks = 10;
/** Actions at once. */
const together = 40;
const mebibyte = 1_048_576;

const reviewRule = `rules:
  - id: open.review
    title: What asks for it is reviewed
    decision: review
    severity: low
    risk: 1
    match: { phase: input, tool: held_tool }
    message: somebody has to look at it
`;

/** The state of the process after a tenth of all decisions. */
interface Mark {
  readonly decisions: number;
  readonly heap: number;
  readonly resident: number;
  /** CPU of all threads since the mark before, a decision. */
  readonly cpuUs: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
}

/** Every part of a gateway but its ports: policies, participants, evidence on disk and all subscribers. */
describe(`a gateway after ${decisions} decisions`, function () {
  this.timeout(roundsOf(120_000, 10_800_000));
  let folder: string;
  let parts: Parts;
  const found: Mark[] = [];

  before(async () => {
    folder = await mkdtemp(join(tmpdir(), "endurance-"));
    const more = "sessions: { review_flood: { reviews: 0 }, risk: { kill_at: 0 } }\nlog: { level: silent }";
    const files = { ...siteFiles(), "packs/open/rules/review.yaml": reviewRule, "gateway.yaml": siteConfig({ more }) };
    for (const [path, text] of Object.entries(files)) {
      await mkdir(dirname(join(folder, path)), { recursive: true });
      await writeFile(join(folder, path), text);
    }
    parts = await openParts(await loadConfig(join(folder, "gateway.yaml"), process.env), openLog("silent", false));
    await parts.killSwitch.includeNewTenants();
  });

  after(async () => {
    if (parts !== undefined) await closeParts(parts);
    await rm(folder, { recursive: true });
  });

  const dispatch: Dispatch<Json> = () => {
    const output = { content: [{ type: "text", text: "customer 4711: Ada Lovelace, London" }] };
    return Promise.resolve({ status: "success", output, makeReply: (judged) => judged });
  };

  /** Of ten actions, eight are allowed, one is blocked and one is held. Returns the milliseconds until its end. */
  async function decide(n: number): Promise<number> {
    const tool = n % 10 === 8 ? "delete_note" : n % 10 === 9 ? "held_tool" : `tool-${n % 50}`;
    // What waits for a review is one action, repeated.
    const subject = n % 10 === 9 ? 0 : n;
    const action = newAction({ tool, arguments: { id: `customer-${subject}` } }, `session-${subject % sessions}`);
    const begun = performance.now();
    const { kind } = await runAction(parts.road, action, dispatch);
    if ((kind === "answered") !== tool.startsWith("tool-"))
      throw new Error(`expected another end of ${tool}, got ${kind}`);
    return performance.now() - begun;
  }

  async function decideUntil(first: number, end: number): Promise<Mark> {
    const cpu = cpuMs();
    const times: number[] = [];
    for (let next = first; next < end; next += together) {
      const some = Array.from({ length: Math.min(together, end - next) }, (_, at) => decide(next + at));
      times.push(...(await Promise.all(some)));
    }
    const cpuUs = ((cpuMs() - cpu) * 1_000) / (end - first);
    const heap = heapInUse();
    const [p50Ms, p99Ms] = [quantile(times, 0.5), quantile(times, 0.99)];
    return { decisions: end, heap, resident: process.memoryUsage().rss, cpuUs, p50Ms, p99Ms };
  }

  it("takes no more memory and no more time for each than before [S74]", async () => {
    const print = (text: string): unknown => roundsOf(0, 1) === 1 && process.stdout.write(text);
    print(`\n${tableHead(["decisions", "heap MiB", "resident MiB", "CPU µs", "p50 ms", "p99 ms"])}`);
    for (let at = 0; at < marks; at++) {
      const mark = await decideUntil((decisions / marks) * at, (decisions / marks) * (at + 1));
      found.push(mark);
      const memory = [mark.heap, mark.resident].map((bytes) => (bytes / mebibyte).toFixed(0));
      const time = [mark.cpuUs.toFixed(0), mark.p50Ms.toFixed(1), mark.p99Ms.toFixed(1)];
      print(tableRow([mark.decisions, ...memory, ...time]));
    }
    // What is kept in memory of the latest actions and sessions is full by the half.
    const [early, late] = [found.slice(0, marks / 2), found.slice(marks / 2)];
    const grown = Number(late.at(-1)?.heap) - Number(early.at(-1)?.heap);
    expect(grown, "bytes of the heap").to.be.below(roundsOf(8, 24) * mebibyte);
    const costOf = (some: readonly Mark[]): number =>
      quantile(
        some.map(({ cpuUs }) => cpuUs),
        0.5,
      );
    expect(costOf(late), "CPU of a decision").to.be.below(1.5 * costOf(early));
  });
});
