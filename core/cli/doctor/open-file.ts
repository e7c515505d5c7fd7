import { readFile } from "node:fs/promises";
import type { GatewayConfig } from "../../config/gateway-config.ts";
import { type Finding, fail, ok, type Patient, warn } from "./finding.ts";

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
