import { stat } from "node:fs/promises";
import { join } from "node:path";
import { type Examine, type Finding, fail, ok, warn } from "./finding.ts";
import { probeFolder } from "./probe.ts";

/** File systems keep times by the clock tick, networks take a moment. */
const mostSkewMs = 2_000;
const mostJumpMs = 500;
const watchedMs = 250;
/** Before this, no clock was set. */
const firstMs = Date.parse("2026-01-01T00:00:00Z");

/** What was seen of the clock, in milliseconds. */
export interface ClockSigns {
  readonly nowMs: number;
  /** How far it went, beyond the time that passed while it was watched. */
  readonly jumpMs: number;
  /** When evidence was written last; null where there is none. */
  readonly writtenMs: number | null;
  /** The time of the data folder's file system less its own; null where none was to be had. */
  readonly skewMs: number | null;
}

/** Whether the clock is set, steady, and never was ahead of where it is now. */
export const examineClock: Examine = async ({ config: { dataDir } }) => {
  const jumpMs = await watchClock();
  const written = await stat(join(dataDir, "high-water")).catch(() => null);
  const probed = await probeFolder(dataDir, 0).catch(() => null);
  return judgeClock({
    nowMs: Date.now(),
    jumpMs,
    writtenMs: written?.mtimeMs ?? null,
    skewMs: probed?.skewMs ?? null,
  });
};

export function judgeClock({ nowMs, jumpMs, writtenMs, skewMs }: ClockSigns): readonly Finding[] {
  const mend = "set the clock, and let one service keep it, such as systemd-timesyncd or chrony";
  const found: Finding[] = [];
  if (nowMs < firstMs) found.push(fail(`it says ${new Date(nowMs).toISOString()}, and was never set`, mend));
  const aheadMs = (writtenMs ?? nowMs) - nowMs;
  if (aheadMs > mostSkewMs) {
    found.push(fail(`the latest evidence was written ${seconds(aheadMs)} from now: the clock has gone back`, mend));
  }
  if (Math.abs(jumpMs) > mostJumpMs) {
    found.push(warn(`it jumped by ${seconds(jumpMs)} while it was watched: approvals and tickets end by it`, mend));
  }
  if (Math.abs(skewMs ?? 0) > mostSkewMs) {
    found.push(warn(`the data folder's file system is ${seconds(skewMs ?? 0)} ahead of this machine`, mend));
  }
  return found.length === 0 ? [ok("set, and steady")] : found;
}

/** How far the clock went beyond the time that passed. */
async function watchClock(): Promise<number> {
  const [wall, steady] = [Date.now(), performance.now()];
  await new Promise((resolve) => setTimeout(resolve, watchedMs));
  return Date.now() - wall - (performance.now() - steady);
}

function seconds(ms: number): string {
  return `${(ms / 1_000).toFixed(1)} s`;
}
