import { readdirSync, readFileSync } from "node:fs";

/** Processor time and writes of a process since it began; Linux alone counts them so. */
export interface ProcessUsage {
  readonly pid: number;
  /** Run time in nanoseconds by thread id. The main thread has the id of the process. */
  readonly threadNs: ReadonlyMap<number, number>;
  /** Bytes that the kernel charged for storage: whole pages, and again for each sync of a page that changed since. */
  readonly writtenBytes: number;
}

export interface ProcessCost {
  readonly mainUs: number;
  /** Of all other threads: garbage collection, thread pool, workers, the store's own. */
  readonly otherUs: number;
  readonly writtenBytes: number;
}

/** Of a second, as Linux counts processor time in `stat`. */
const ticks = 100;

export function usageOf(pid: number): ProcessUsage {
  const threadNs = new Map<number, number>();
  for (const id of readdirSync(`/proc/${pid}/task`)) {
    const ran = readThread(pid, id);
    if (ran !== undefined) threadNs.set(Number(id), ran);
  }
  const written = /^write_bytes: (\d+)$/m.exec(readFileSync(`/proc/${pid}/io`, "utf8"))?.[1];
  return { pid, threadNs, writtenBytes: Number(written) };
}

/** The first field of `schedstat` is run time; undefined for a thread that ended meanwhile. */
function readThread(pid: number, id: string): number | undefined {
  try {
    return Number(readFileSync(`/proc/${pid}/task/${id}/schedstat`, "utf8").split(" ")[0]);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === "ENOENT" || code === "ESRCH") return undefined;
    throw error;
  }
}

/** Cost from `before` until now. Threads that ended in between are left out. */
export function costSince(before: ProcessUsage): ProcessCost {
  const after = usageOf(before.pid);
  let mainUs = 0;
  let otherUs = 0;
  for (const [id, ran] of after.threadNs) {
    const us = (ran - (before.threadNs.get(id) ?? 0)) / 1_000;
    if (id === before.pid) mainUs += us;
    else otherUs += us;
  }
  return { mainUs, otherUs, writtenBytes: after.writtenBytes - before.writtenBytes };
}

/** Processor time of a process since it began, user and system, threads that ended included; to a hundredth. */
export function cpuSecondsOf(pid: number): number {
  const fields = readFileSync(`/proc/${pid}/stat`, "utf8").split(") ")[1]?.split(" ") ?? [];
  return (Number(fields[11]) + Number(fields[12])) / ticks;
}
