import { once } from "node:events";
import { setTimeout as sleep } from "node:timers/promises";
import { Pool } from "undici";
import { WebSocket } from "ws";
import { quantile } from "../quantile.ts";
import { lookupCall } from "../target.ts";
import { type Member, operator, principalOf, stopped, victims } from "./crew.ts";
import { refusalIn, Tally } from "./tally.ts";

/** How long something took whenever it was done, null where it never was, and how often and why it was not. */
export interface Seen {
  readonly p50Ms: number | null;
  readonly p99Ms: number | null;
  readonly failures: number;
  readonly reasons: readonly string[];
}

export const laneNames = ["call", "session", "admin", "kill", "health", "socket"] as const;
export type LaneName = (typeof laneNames)[number];
export type Sights = Readonly<Record<LaneName, Seen>>;

/** Something that is done again and again, however long the last time takes. */
interface Lane {
  readonly everyMs: number;
  /** Resolves when it is done; rejects where it was refused. */
  act(n: number): Promise<void>;
  /** Undoes it, unmeasured. */
  undo?(n: number): Promise<void>;
}

const [url = "", adminUrl = ""] = process.argv.slice(2);
const options = { headersTimeout: 60_000, bodyTimeout: 60_000 };
const gateway = new Pool(url, options);
const admin = new Pool(adminUrl, options);
const json = { "content-type": "application/json" };

interface Sent {
  readonly session: string;
}

const clientInfo = { name: "bench", version: "1" };
const params = { protocolVersion: "2025-11-25", capabilities: {}, clientInfo };
const initialize = JSON.stringify({ jsonrpc: "2.0", id: 1, method: "initialize", params });
const sessions = new Map<number, string>();

/** Throws unless it was answered, and with no error. */
async function send(
  pool: Pool,
  method: "GET" | "POST" | "DELETE",
  path: string,
  headers: object,
  body?: string,
): Promise<Sent> {
  const request = { method, path, headers: { ...json, ...headers }, ...(body === undefined ? {} : { body }) };
  const response = await pool.request(request);
  const text = await response.body.text();
  const refusal = text === "" ? undefined : refusalIn(text);
  if (response.statusCode >= 300 || refusal !== undefined) throw new Error(`${response.statusCode} ${refusal ?? ""}`);
  return { session: String(response.headers["mcp-session-id"] ?? "") };
}

function keyOf({ key }: Member): object {
  return { "x-api-key": key };
}

function victim(n: number): Member {
  return victims[n % victims.length] as Member;
}

function targetOf(n: number): object {
  return { scope: "principal", subject: principalOf(stopped[n % stopped.length] as Member) };
}

const lanes: Readonly<Record<LaneName, Lane>> = {
  call: {
    everyMs: 25,
    act: async (n) => void (await send(gateway, "POST", "/mcp", keyOf(victim(n)), lookupCall(n))),
  },
  session: {
    everyMs: 500,
    act: async (n) => {
      const { session } = await send(gateway, "POST", "/mcp", keyOf(victim(n)), initialize);
      sessions.set(n, session);
      await send(gateway, "POST", "/mcp", { ...keyOf(victim(n)), "mcp-session-id": session }, lookupCall(n));
    },
    undo: async (n) => {
      const session = sessions.get(n);
      if (session === undefined) return;
      await send(gateway, "DELETE", "/mcp", { ...keyOf(victim(n)), "mcp-session-id": session });
    },
  },
  admin: {
    everyMs: 50,
    act: async () => void (await send(admin, "GET", "/admin/v1/approvals", keyOf(operator))),
  },
  kill: {
    everyMs: 500,
    act: async (n) => {
      await send(admin, "POST", "/admin/v1/kills", keyOf(operator), JSON.stringify(targetOf(n)));
    },
    undo: async (n) => {
      const release = { ...targetOf(n), reason: "measured" };
      await send(admin, "POST", "/admin/v1/kills/release", keyOf(operator), JSON.stringify(release));
    },
  },
  health: { everyMs: 50, act: async () => void (await send(gateway, "GET", "/health", {})) },
  socket: {
    everyMs: 1_000,
    act: async () => {
      const socket = new WebSocket(`${url.replace("http", "ws")}/v1/ws`, { headers: { ...keyOf(operator) } });
      socket.on("error", () => undefined);
      await once(socket, "open");
      socket.terminate();
    },
  },
};

async function watch(lane: Lane, seconds: number): Promise<Seen> {
  const taken: number[] = [];
  const reasons = new Tally();
  let failures = 0;
  const begun = performance.now();
  const act = async (n: number): Promise<void> => {
    const start = performance.now();
    await lane.act(n).then(
      () => taken.push(performance.now() - start),
      (error: Error) => {
        failures++;
        reasons.add("", error.message);
      },
    );
    await lane.undo?.(n).catch(() => undefined);
  };
  const acts: Promise<void>[] = [];
  for (let n = 0; n * lane.everyMs < seconds * 1_000; n++) {
    await sleep(Math.max(0, begun + n * lane.everyMs - performance.now()));
    acts.push(act(n));
  }
  await Promise.all(acts);
  const at = (share: number): number | null => (taken.length === 0 ? null : quantile(taken, share));
  return { p50Ms: at(0.5), p99Ms: at(0.99), failures, reasons: reasons.lines(2) };
}

process.once("disconnect", () => process.exit());
/** Each message is a number of seconds, and is answered with what was seen in them. */
process.on("message", (seconds: number) => {
  void Promise.all(laneNames.map(async (name) => [name, await watch(lanes[name], seconds)])).then((seen) =>
    process.send?.(Object.fromEntries(seen)),
  );
});
