import { readFile } from "node:fs/promises";
import type { RunningGateway } from "./gateway.ts";

/** Memory that a gateway's process holds now, in bytes. */
export async function residentBytes({ process }: RunningGateway): Promise<number> {
  const status = await readFile(`/proc/${process.pid}/status`, "utf8");
  return Number(/^VmRSS:\s+(\d+) kB$/m.exec(status)?.[1]) * 1024;
}

/**
 * Repeats what should leave no memory behind, at most three times, while it grew by `limit` or more: the collector of
 * garbage chooses its moment, a leak grows each time. Returns the growth of the last round.
 */
export async function settledGrowth(limit: number, grow: (round: number) => Promise<number>): Promise<number> {
  let grown = await grow(0);
  for (let round = 1; round < 3 && grown >= limit; round++) grown = await grow(round);
  return grown;
}

/** CPU time that a gateway's process has spent, in milliseconds; the system counts in steps of 10. */
export async function processorMs({ process }: RunningGateway): Promise<number> {
  const stat = await readFile(`/proc/${process.pid}/stat`, "utf8");
  const [user, system] = stat
    .slice(stat.lastIndexOf(")") + 2)
    .split(" ")
    .slice(11, 13);
  return (Number(user) + Number(system)) * 10;
}
