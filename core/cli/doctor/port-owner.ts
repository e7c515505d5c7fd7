import { readdir, readFile, readlink } from "node:fs/promises";
import { processName } from "./process-name.ts";

/** A process that listens on a port. */
export interface PortOwner {
  readonly pid: number;
  readonly name: string;
}

const listening = "0A";

/** Who listens on a port of this machine; undefined where the system does not tell this user. */
export async function portOwner(port: number): Promise<PortOwner | undefined> {
  const sockets = await listeningSockets(port);
  if (sockets.size === 0) return undefined;
  const pids = (await readdir("/proc").catch(() => [])).filter((name) => /^\d+$/.test(name));
  for (const pid of pids) {
    if (await holdsSocket(pid, sockets)) return { pid: Number(pid), name: await processName(Number(pid)) };
  }
  return undefined;
}

/** `sl local_address rem_address st … inode`, the port in hex behind the colon. */
async function listeningSockets(port: number): Promise<ReadonlySet<string>> {
  const tables = await Promise.all(
    ["tcp", "tcp6"].map((name) => readFile(`/proc/net/${name}`, "utf8").catch(() => "")),
  );
  const wanted = `:${port.toString(16).toUpperCase().padStart(4, "0")}`;
  const rows = tables.flatMap((table) => table.split("\n").map((line) => line.trim().split(/\s+/)));
  const held = rows.filter(([, local, , state]) => local?.endsWith(wanted) && state === listening);
  return new Set(held.map((row) => `socket:[${row[9]}]`));
}

async function holdsSocket(pid: string, sockets: ReadonlySet<string>): Promise<boolean> {
  const folder = `/proc/${pid}/fd`;
  const files = await readdir(folder).catch(() => []);
  for (const file of files) {
    if (sockets.has(await readlink(`${folder}/${file}`).catch(() => ""))) return true;
  }
  return false;
}
