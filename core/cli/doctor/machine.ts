import { randomBytes } from "node:crypto";
import { open, readFile, rm, stat, statfs } from "node:fs/promises";
import { dirname, join } from "node:path";
import type { GatewayConfig } from "../../config/gateway-config.ts";
import { type DoctorCheck, type DoctorFinding, type DoctorTarget, fail, ok, warn } from "./finding.ts";

/** File systems round times to the clock tick, and networks add latency. */
const maxSkewMs = 2_000;
const maxJumpMs = 500;
const watchMs = 250;
/** A clock before this was never set. */
const minClockMs = Date.parse("2026-01-01T00:00:00Z");

/** Observations of the clock, in milliseconds. */
interface ClockSigns {
  readonly nowMs: number;
  /** Movement while watched, less the elapsed time. */
  readonly jumpMs: number;
  /** Time of the latest evidence; null where there is none. */
  readonly writtenMs: number | null;
  /** The clock of the data folder's file system less this one; null where unknown. */
  readonly skewMs: number | null;
}

/** Checks that the clock is set, steady, and was not set back. */
export const checkClock: DoctorCheck = async ({ config: { dataDir } }) => {
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

/** Judges observations of the clock. */
export function judgeClock({ nowMs, jumpMs, writtenMs, skewMs }: ClockSigns): readonly DoctorFinding[] {
  const fix = "set the clock, and keep it with one service, such as systemd-timesyncd or chrony";
  const found: DoctorFinding[] = [];
  if (nowMs < minClockMs) found.push(fail(`it shows ${new Date(nowMs).toISOString()}: it was never set`, fix));
  const aheadMs = (writtenMs ?? nowMs) - nowMs;
  if (aheadMs > maxSkewMs) {
    found.push(fail(`the latest evidence is ${seconds(aheadMs)} in the future: the clock was set back`, fix));
  }
  if (Math.abs(jumpMs) > maxJumpMs) {
    found.push(warn(`it jumped by ${seconds(jumpMs)} while watched: approvals and tickets expire by it`, fix));
  }
  if (Math.abs(skewMs ?? 0) > maxSkewMs) {
    found.push(warn(`the data folder's file system is ${seconds(skewMs ?? 0)} ahead of this machine`, fix));
  }
  return found.length === 0 ? [ok("set, and steady")] : found;
}

/** Returns how far the clock moved in an interval, less the elapsed time. */
async function watchClock(): Promise<number> {
  const [wall, steady] = [Date.now(), performance.now()];
  await new Promise((resolve) => setTimeout(resolve, watchMs));
  return Date.now() - wall - (performance.now() - steady);
}

function seconds(ms: number): string {
  return `${(ms / 1_000).toFixed(1)} s`;
}

const probes = 100;
const slowMs = 20;
/** No durable disk syncs faster. */
const minSyncMs = 0.02;

/** Measures synced writes to the data folder, for which evidence waits. */
export const checkSync: DoctorCheck = async ({ config: { dataDir, state } }) => {
  if (!state.enabled) return [ok("state is in memory")];
  if ((await stat(dataDir).catch(() => undefined)) === undefined) return [ok("measured once the data folder exists")];
  try {
    const { syncMs } = await probeFolder(dataDir, probes);
    return [judgeSync(syncMs)];
  } catch (cause) {
    const code = (cause as NodeJS.ErrnoException).code ?? String(cause);
    return [fail(`\`${dataDir}\` cannot be written: ${code}`, "give it to the user who runs the gateway, mode 700")];
  }
};

/** Judges a disk by the times of synced writes, sorted. */
export function judgeSync(syncMs: readonly number[]): DoctorFinding {
  const mean = syncMs.reduce((sum, ms) => sum + ms, 0) / syncMs.length;
  const p99 = syncMs[Math.ceil(syncMs.length * 0.99) - 1] ?? mean;
  const text = `a synced write takes ${mean.toFixed(2)} ms on average, ${p99.toFixed(2)} ms at p99`;
  if (mean < minSyncMs) {
    return warn(`${text}: no durable disk is so fast`, "check that its write cache survives a power cut");
  }
  if (p99 <= slowMs) return ok(text);
  return warn(`${text}: each action waits for two of them`, "use a local SSD for `data_dir`");
}

const mebibyte = 1_048_576;
const minFreeBytes = 256 * mebibyte;
const lowFreeBytes = 2_048 * mebibyte;

/** By type of `statfs`: file systems that may lose synced writes, or are shared with other machines. */
const unsafeFileSystems: ReadonlyMap<number, string> = new Map([
  [0x01021994, "tmpfs: it is memory, and lost at a restart"],
  [0x858458f6, "ramfs: it is memory, and lost at a restart"],
  [0x794c7630, "overlayfs: it is lost with its container, and syncs as the layer below does"],
  [0x6969, "NFS: locks and syncs depend on the server"],
  [0xff534d42, "CIFS: locks and syncs depend on the server"],
  [0xfe534d42, "SMB: locks and syncs depend on the server"],
  [0x65735546, "FUSE: syncs depend on the program behind it"],
  [0x01021997, "9p: syncs depend on the host"],
]);

/** Checks the disk of the data folder, or of its nearest existing parent. */
export const checkDisk: DoctorCheck = async ({ config: { dataDir, state } }) => {
  if (!state.enabled)
    return [warn("state and evidence are in memory, and lost at a restart", "set `state.enabled` to true")];
  const place = await nearestFolder(dataDir);
  const { type, bsize, bavail } = await statfs(place);
  const reason = unsafeFileSystems.get(type >>> 0);
  const kind: readonly DoctorFinding[] =
    reason === undefined
      ? []
      : [warn(`\`${place}\` is on ${reason}`, "set `data_dir` to a folder on a disk of this machine")];
  return [judgeSpace(bavail * bsize), ...kind];
};

/** Judges the free space of a disk, in bytes. */
export function judgeSpace(free: number): DoctorFinding {
  const text = `${Math.floor(free / mebibyte)} MiB free`;
  const fix = "free some space, or set `data_dir` to a larger disk: a full disk blocks every action";
  if (free < minFreeBytes) return fail(text, fix);
  return free < lowFreeBytes ? warn(text, fix) : ok(text);
}

/** Returns a folder, or its nearest existing parent. */
async function nearestFolder(path: string): Promise<string> {
  const found = await stat(path).catch(() => undefined);
  return found?.isDirectory() || dirname(path) === path ? path : nearestFolder(dirname(path));
}

/** Files of the store, logs, pipes of upstreams and connections to providers. */
const ownFiles = 512;
/** Below this, a handful of clients uses the limit up. */
const minFiles = 1_024;

/** Checks the limit of open files against the connections that the configuration permits. */
export async function checkOpenFiles({ config }: DoctorTarget): Promise<readonly DoctorFinding[]> {
  const max = await openFileLimit();
  return [max === undefined ? ok("this system does not report the limit") : judgeOpenFiles(max, config)];
}

function judgeOpenFiles(max: number, { limits }: GatewayConfig): DoctorFinding {
  const wanted = limits.maxConnections + ownFiles;
  const text = `${max} are permitted, at most ${wanted} are needed`;
  if (max >= wanted) return ok(text);
  const fix = `raise it: \`LimitNOFILE=${wanted}\` of systemd, \`ulimit -n ${wanted}\` in a shell; or lower \`limits.max_connections\``;
  return max < minFiles ? fail(text, fix) : warn(text, fix);
}

/** Returns the limit of this process, which Node raises as far as permitted; undefined where the system does not say. */
async function openFileLimit(): Promise<number | undefined> {
  const text = await readFile("/proc/self/limits", "utf8").catch(() => "");
  const [, soft] = /^Max open files\s+(\d+|unlimited)/m.exec(text) ?? [];
  if (soft === undefined) return undefined;
  return soft === "unlimited" ? Number.POSITIVE_INFINITY : Number(soft);
}

interface Probed {
  /** Times of synced writes of 4 KiB, in milliseconds, sorted. */
  readonly syncMs: readonly number[];
  /** The clock of the file system less that of this process, in milliseconds. */
  readonly skewMs: number;
}

const page = Buffer.alloc(4_096, 0x2e);
const maxProbeMs = 3_000;

/** Creates a file in a folder, writes and syncs it `writes` times, and removes it. Rejects where that fails. */
async function probeFolder(folder: string, writes: number): Promise<Probed> {
  const path = join(folder, `.doctor-${randomBytes(8).toString("hex")}`);
  const file = await open(path, "wx", 0o600);
  try {
    const { mtimeMs } = await file.stat();
    const skewMs = mtimeMs - Date.now();
    const syncMs: number[] = [];
    const started = performance.now();
    while (syncMs.length < writes && performance.now() - started < maxProbeMs) {
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

/** The minimum of `engines` in package.json. */
export const oldestNode = "20.19";

/** Options that open a debugger or weaken TLS or HTTP parsing. */
const dangerousOption =
  /^--(?:inspect(?:-brk|-wait|-port)?|debug-port|insecure-http-parser|tls-min-v1\.[01]|tls-cipher-list)$/;

/** Checks the version of Node and the environment variables that change it. */
export function checkNodeVersion(version: string, env: NodeJS.ProcessEnv): readonly DoctorFinding[] {
  const found = [
    isSupported(version)
      ? ok(`Node ${version}`)
      : fail(`Node ${version}, expected ${oldestNode} or later`, "install a newer Node"),
    ...checkNodeOptions(env.NODE_OPTIONS ?? ""),
  ];
  if (env.NODE_TLS_REJECT_UNAUTHORIZED === "0") {
    found.push(fail("NODE_TLS_REJECT_UNAUTHORIZED is 0: no certificate is checked", "unset it"));
  }
  return found;
}

function isSupported(version: string): boolean {
  const [[major = 0, minor = 0], [minMajor = 0, minMinor = 0]] = [version, oldestNode].map((text) =>
    text.split(".").map(Number),
  ) as [number[], number[]];
  return major > minMajor || (major === minMajor && minor >= minMinor);
}

/** Prints the names of options only: their values may be secrets. */
function checkNodeOptions(text: string): readonly DoctorFinding[] {
  const names = text.match(/(?<=^|\s)--?[a-z][a-z0-9.-]*/g) ?? [];
  if (names.length === 0) return [];
  const dangerous = names.filter((name) => dangerousOption.test(name));
  if (dangerous.length > 0) {
    return [fail(`NODE_OPTIONS weakens the process: \`${dangerous.join(" ")}\``, "unset NODE_OPTIONS")];
  }
  return [warn(`NODE_OPTIONS changes the process: \`${names.join(" ")}\``, "unset NODE_OPTIONS")];
}
