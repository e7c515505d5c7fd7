import { readFile } from "node:fs/promises";
import type { RunningGateway } from "./gateway.ts";

/** Memory that a gateway's process holds now, in bytes. */
export async function residentBytes({ process }: RunningGateway): Promise<number> {
  const status = await readFile(`/proc/${process.pid}/status`, "utf8");
  return Number(/^VmRSS:\s+(\d+) kB$/m.exec(status)?.[1]) * 1024;
}
