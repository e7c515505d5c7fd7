/**
 * What work costs this process at best, in milliseconds of the processor: neither other processes on a busy machine nor
 * one collection of garbage count against it.
 */
export function leastCpuMs(runs: number, work: () => unknown): number {
  let least = Number.POSITIVE_INFINITY;
  for (let run = 0; run < runs; run += 1) {
    const before = process.cpuUsage();
    work();
    least = Math.min(least, process.cpuUsage(before).user / 1_000);
  }
  return least;
}
