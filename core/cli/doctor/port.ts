import { readdir, readFile, readlink, stat } from "node:fs/promises";
import { createServer } from "node:net";
import { join } from "node:path";
import { escapeHidden } from "../../action/visible-text.ts";
import { type DoctorCheck, type DoctorFinding, type DoctorTarget, fail, type LockHolder, ok } from "./finding.ts";

/** Checks that the three ports can be opened, by opening them briefly, and names the process that holds one. */
export const checkPorts: DoctorCheck = async (target) => {
  const { listen } = target.config;
  const places = [
    { key: "gateway_port", host: listen.host, port: listen.gatewayPort },
    { key: "admin_port", host: listen.adminHost, port: listen.adminPort },
    { key: "metrics_port", host: listen.adminHost, port: listen.metricsPort },
  ];
  const found: DoctorFinding[] = [];
  for (const place of places) if (place.port !== 0) found.push(await checkPort(place, target));
  return found.length === 0 ? [ok("any free ports")] : found;
};

interface ListenPlace {
  readonly key: string;
  readonly host: string;
  readonly port: number;
}

async function checkPort({ key, host, port }: ListenPlace, { holder }: DoctorTarget): Promise<DoctorFinding> {
  const code = await tryListening(host, port);
  if (code === undefined) return ok(`${port} is free`);
  if (code === "EADDRINUSE") {
    const owner = await portOwner(port);
    if (owner !== undefined && owner.pid === holder?.pid)
      return ok(`${port} is open: the gateway runs, pid ${owner.pid}`);
    const who = owner === undefined ? "another process" : `\`${owner.name}\`, pid ${owner.pid}`;
    return fail(`${port} is taken by ${who}`, `stop it, or set another \`listen.${key}\``);
  }
  if (code === "EACCES") return fail(`this user may not open ${port}`, `set a \`listen.${key}\` above 1023`);
  const hostKey = key === "gateway_port" ? "host" : "admin_host";
  return fail(`\`${host}\` cannot be listened on: ${code}`, `set \`listen.${hostKey}\` to an address of this machine`);
}

/** Returns the error code of listening on a port; undefined where it works. */
function tryListening(host: string, port: number): Promise<string | undefined> {
  const server = createServer();
  return new Promise((resolve) => {
    server.once("error", ({ code }: NodeJS.ErrnoException) => resolve(code ?? "unknown"));
    server.listen({ host, port, exclusive: true }, () => server.close(() => resolve(undefined)));
  });
}

/** A process that listens on a port. */
interface PortOwner {
  readonly pid: number;
  readonly name: string;
}

const listening = "0A";

/** Returns the process that listens on a port of this machine; undefined where the system does not show it to this user. */
async function portOwner(port: number): Promise<PortOwner | undefined> {
  const sockets = await listeningSockets(port);
  if (sockets.size === 0) return undefined;
  const pids = (await readdir("/proc").catch(() => [])).filter((name) => /^\d+$/.test(name));
  for (const pid of pids) {
    if (await holdsSocket(pid, sockets)) return { pid: Number(pid), name: await processName(Number(pid)) };
  }
  return undefined;
}

/** Parses `sl local_address rem_address st … inode`, where the port is in hex behind the colon. */
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

/**
 * Returns the process that holds the state in a data folder, without opening it. Null where none does; undefined where the
 * system does not say, so that one may.
 */
export async function lockHolder(dataDir: string): Promise<LockHolder | null | undefined> {
  const lock = await stat(join(dataDir, "state", "LOCK")).catch(() => undefined);
  if (lock === undefined) return null;
  const locks = await readFile("/proc/locks", "utf8").catch(() => undefined);
  if (locks === undefined) return undefined;
  const pid = holderOf(locks, lock.ino);
  return pid === undefined ? null : { pid, name: await processName(pid) };
}

/** Parses `1: POSIX  ADVISORY  WRITE 4711 fe:01:1234 0 EOF`. Rows with `->` wait for a lock and hold none. */
function holderOf(locks: string, inode: number): number | undefined {
  for (const line of locks.split("\n")) {
    const [, pid, ino] = /^\d+: (?:POSIX|OFDLCK)\s+\S+\s+WRITE\s+(\d+) [0-9a-f]+:[0-9a-f]+:(\d+) /.exec(line) ?? [];
    if (Number(ino) === inode) return Number(pid);
  }
  return undefined;
}

/** Returns the name of a process, printable; `?` where the system does not say. */
async function processName(pid: number): Promise<string> {
  const name = await readFile(`/proc/${pid}/comm`, "utf8").catch(() => "?");
  return escapeHidden(name.trim());
}
