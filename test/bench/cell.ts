import { folderBytes } from "../../core/store/folder.ts";
import { scrape } from "../support/scrape.ts";
import { type LoadOptions, type LoadResult, measureLoad } from "./load.ts";
import { costSince, usageOf } from "./process-cost.ts";
import { quantile } from "./quantile.ts";
import { dataFolder, type Target } from "./target.ts";

/** One load on one target: how fast it was, and what each call cost the measured process. */
export interface Cell extends LoadResult {
  readonly mainUs: number;
  readonly otherUs: number;
  /** Records that shared a synced write; 0 where none was made. */
  readonly batchRecords: number;
  /** Bytes charged for storage, and growth of the data folder, a call. */
  readonly writtenBytes: number;
  readonly keptBytes: number;
}

export type CellLoad = Omit<LoadOptions, "url" | "headers"> & { readonly path: string };

interface Progress {
  readonly batches: number;
  readonly records: number;
  readonly bytes: number;
}

export async function measureCell(target: Target, load: CellLoad): Promise<Cell> {
  const before = await progressOf(target);
  const usage = usageOf(target.pid);
  const result = await drive(target, load);
  const { mainUs, otherUs, writtenBytes } = costSince(usage);
  const after = await progressOf(target);
  const each = (value: number): number => value / result.calls;
  const batches = after.batches - before.batches;
  return {
    ...result,
    mainUs: each(mainUs),
    otherUs: each(otherUs),
    batchRecords: batches === 0 ? 0 : (after.records - before.records) / batches,
    writtenBytes: each(writtenBytes),
    keptBytes: each(after.bytes - before.bytes),
  };
}

/** Loads a target without measuring it: its code is slow until it was compiled. */
export async function warmUp(target: Target, calls: number, load: Omit<CellLoad, "connections">): Promise<void> {
  await drive(target, { ...load, connections: 64, calls });
}

function drive({ origin, headers }: Target, { path, ...load }: CellLoad): Promise<LoadResult> {
  return measureLoad({ ...load, url: origin + path, headers });
}

async function progressOf({ gateway }: Target): Promise<Progress> {
  if (gateway === null) return { batches: 0, records: 0, bytes: 0 };
  const metrics = await scrape(gateway.metricsUrl);
  const read = (of: string): number => metrics.get(`gateway_evidence_batch_records_${of}`) ?? 0;
  return { batches: read("count"), records: read("sum"), bytes: await folderBytes(dataFolder(gateway)) };
}

/** Each figure's median over the rounds of a cell; errors and calls are those of all rounds. */
export function medianCell(rounds: readonly Cell[]): Cell {
  const median = (figure: keyof Cell): number => {
    const values = rounds.map((round) => round[figure]);
    return quantile(values, 0.5);
  };
  const sum = (figure: keyof Cell): number => rounds.reduce((total, round) => total + round[figure], 0);
  return {
    calls: sum("calls"),
    errors: sum("errors"),
    requestsPerSecond: median("requestsPerSecond"),
    p50Ms: median("p50Ms"),
    p99Ms: median("p99Ms"),
    firstTokenMs: median("firstTokenMs"),
    mainUs: median("mainUs"),
    otherUs: median("otherUs"),
    batchRecords: median("batchRecords"),
    writtenBytes: median("writtenBytes"),
    keptBytes: median("keptBytes"),
  };
}

/** Loads the targets in turn, so that whatever else the machine does is in all of them. Returns their medians in order. */
export async function measureInTurn(
  targets: readonly Target[],
  rounds: number,
  load: CellLoad,
): Promise<readonly Cell[]> {
  const cells: Cell[][] = targets.map(() => []);
  for (let round = 0; round < rounds; round++) {
    for (const [index, target] of targets.entries()) cells[index]?.push(await measureCell(target, load));
  }
  return cells.map(medianCell);
}

/** Heads of the columns that `costCells` fills. */
export const costColumns = [
  "CPU µs main",
  "others",
  "of bare's CPU",
  "records a commit",
  "written B",
  "kept B",
] as const;

/** What a call costs, beside what it costs the bare pass-through; empty where there is nothing to tell. */
export function costCells(cell: Cell, bare: Cell): readonly string[] {
  const own = cell.mainUs + cell.otherUs;
  const cpu = [cell.mainUs.toFixed(0), cell.otherUs.toFixed(0), (own / (bare.mainUs + bare.otherUs)).toFixed(2)];
  if (cell.batchRecords === 0) return [...cpu, "", "", ""];
  return [...cpu, cell.batchRecords.toFixed(1), cell.writtenBytes.toFixed(0), cell.keptBytes.toFixed(0)];
}
