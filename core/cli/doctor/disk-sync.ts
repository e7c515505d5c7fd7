import { stat } from "node:fs/promises";
import { type Examine, type Finding, fail, ok, warn } from "./finding.ts";
import { probeFolder } from "./probe.ts";

const probes = 100;
const slowMs = 20;
/** No disk that keeps what it says is as quick. */
const incredibleMs = 0.02;

/** How long evidence waits for the disk, by writing to it. */
export const examineSync: Examine = async ({ config: { dataDir, state } }) => {
  if (!state.enabled) return [ok("nothing waits for a disk")];
  if ((await stat(dataDir).catch(() => undefined)) === undefined)
    return [ok("to be measured once the data folder is there")];
  try {
    const { syncMs } = await probeFolder(dataDir, probes);
    return [judgeSync(syncMs)];
  } catch (cause) {
    const code = (cause as NodeJS.ErrnoException).code ?? String(cause);
    return [fail(`\`${dataDir}\` cannot be written: ${code}`, "give it to the user who runs the gateway, mode 700")];
  }
};

/** What the times of synced writes, the shortest first, say of a disk. */
export function judgeSync(syncMs: readonly number[]): Finding {
  const mean = syncMs.reduce((sum, ms) => sum + ms, 0) / syncMs.length;
  const p99 = syncMs[Math.ceil(syncMs.length * 0.99) - 1] ?? mean;
  const told = `a synced write takes ${mean.toFixed(2)} ms on average, ${p99.toFixed(2)} ms at p99`;
  if (mean < incredibleMs) {
    return warn(
      `${told}: no disk is so quick`,
      "find out whether it keeps what it says is written, or a power cut will",
    );
  }
  if (p99 <= slowMs) return ok(told);
  return warn(`${told}: each action waits for two of them`, "use a local SSD for `data_dir`");
}
