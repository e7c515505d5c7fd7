import { randomBytes } from "node:crypto";
import { open, readFile, rm, stat, statfs } from "node:fs/promises";
import { dirname, join } from "node:path";
import type { GatewayConfig } from "../../config/gateway-config.ts";
import { type Examine, type Finding, fail, ok, type Patient, warn } from "./finding.ts";

/** File systems keep times by the clock tick, networks take a moment. */
const maxSkewMs = 2_000;
const maxJumpMs = 500;
const watchedMs = 250;
/** Before this, no clock was set. */
const firstMs = Date.parse("2026-01-01T00:00:00Z");

/** What was seen of the clock, in milliseconds. */
interface ClockSigns {
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
  if (aheadMs > maxSkewMs) {
    found.push(fail(`the latest evidence was written ${seconds(aheadMs)} from now: the clock has gone back`, mend));
  }
  if (Math.abs(jumpMs) > maxJumpMs) {
    found.push(warn(`it jumped by ${seconds(jumpMs)} while it was watched: approvals and tickets end by it`, mend));
  }
  if (Math.abs(skewMs ?? 0) > maxSkewMs) {
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

const mebibyte = 1_048_576;
const least = 256 * mebibyte;
const comfortable = 2_048 * mebibyte;

/** By the number that `statfs` tells: file systems that lose what they said is written, or that others share. */
const doubtful: ReadonlyMap<number, string> = new Map([
  [0x01021994, "tmpfs: it is memory, and gone with the machine"],
  [0x858458f6, "ramfs: it is memory, and gone with the machine"],
  [0x794c7630, "overlayfs: it is gone with its container, and syncs as the layer below does"],
  [0x6969, "NFS: what a lock or a sync is worth there depends on the server"],
  [0xff534d42, "CIFS: what a lock or a sync is worth there depends on the server"],
  [0xfe534d42, "SMB: what a lock or a sync is worth there depends on the server"],
  [0x65735546, "FUSE: what a sync is worth there depends on the program behind it"],
  [0x01021997, "9p: what a sync is worth there depends on the host"],
]);

/** The disk that the data folder lies on, or will lie on. */
export const examineDisk: Examine = async ({ config: { dataDir, state } }) => {
  if (!state.enabled) return [warn("nothing is kept: state and evidence are in memory", "set `state.enabled` to true")];
  const place = await nearestFolder(dataDir);
  const { type, bsize, bavail } = await statfs(place);
  const reason = doubtful.get(type >>> 0);
  const kind: readonly Finding[] =
    reason === undefined
      ? []
      : [warn(`\`${place}\` is on ${reason}`, "set `data_dir` to a folder on a disk of this machine")];
  return [judgeSpace(bavail * bsize), ...kind];
};

/** What so many free bytes are worth. */
export function judgeSpace(free: number): Finding {
  const told = `${Math.floor(free / mebibyte)} MiB free`;
  const mend = "make room, or set `data_dir` to a larger disk: without room no action is let through";
  if (free < least) return fail(told, mend);
  return free < comfortable ? warn(told, mend) : ok(told);
}

/** The folder itself, or the closest above it that is there. */
async function nearestFolder(path: string): Promise<string> {
  const found = await stat(path).catch(() => undefined);
  return found?.isDirectory() || dirname(path) === path ? path : nearestFolder(dirname(path));
}

/** The store, logs, pipes of upstreams, connections to providers. */
const ownFiles = 512;
/** Below this, a handful of clients is enough. */
const leastFiles = 1_024;

/** How many files the process may have open, against the connections that the configuration permits. */
export async function examineOpenFiles({ config }: Patient): Promise<readonly Finding[]> {
  const most = await openFileLimit();
  return [most === undefined ? ok("the limit cannot be asked on this system") : judgeOpenFiles(most, config)];
}

function judgeOpenFiles(most: number, { limits }: GatewayConfig): Finding {
  const wanted = limits.maxConnections + ownFiles;
  const told = `${most} may be open, ${wanted} are needed at the most`;
  if (most >= wanted) return ok(told);
  const mend = `raise it: \`LimitNOFILE=${wanted}\` of systemd, \`ulimit -n ${wanted}\` in a shell; or lower \`limits.max_connections\``;
  return most < leastFiles ? fail(told, mend) : warn(told, mend);
}

/** Of this process, which Node has raised as far as it may; undefined where no system tells. */
async function openFileLimit(): Promise<number | undefined> {
  const text = await readFile("/proc/self/limits", "utf8").catch(() => "");
  const [, soft] = /^Max open files\s+(\d+|unlimited)/m.exec(text) ?? [];
  if (soft === undefined) return undefined;
  return soft === "unlimited" ? Number.POSITIVE_INFINITY : Number(soft);
}

/** What writing to a folder showed. */
interface Probed {
  /** Of each synced write of 4 KiB, in milliseconds, the shortest first. */
  readonly syncMs: readonly number[];
  /** The time of the file system less that of this process, in milliseconds. */
  readonly skewMs: number;
}

const page = Buffer.alloc(4_096, 0x2e);
const maxMs = 3_000;

/** Makes a file of its own in a folder, syncs it as often as evidence would be, and removes it. Rejects where that fails. */
async function probeFolder(folder: string, writes: number): Promise<Probed> {
  const path = join(folder, `.doctor-${randomBytes(8).toString("hex")}`);
  const file = await open(path, "wx", 0o600);
  try {
    const { mtimeMs } = await file.stat();
    const skewMs = mtimeMs - Date.now();
    const syncMs: number[] = [];
    const started = performance.now();
    while (syncMs.length < writes && performance.now() - started < maxMs) {
      const before = performance.now();
      await file.write(page);
      await file.datasync();
      syncMs.push(performance.now() - before);
    }
    return { syncMs: syncMs.toSorted((a, b) => a - b), skewMs };
  } finally {
    await file.close();
    await rm(path, { force: true });
  }
}
