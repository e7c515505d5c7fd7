import type { BatchOperation } from "../action/commit-hook.ts";
import { GatewayError } from "../action/error.ts";
import type { Clock } from "../action/id.ts";
import type { SessionLog } from "../kill/kill-store.ts";
import type { Store } from "../store/open.ts";
import type { SessionCache } from "./session-cache.ts";
import { addForgotten, type ForgottenSessions, readForgotten, summaryKey } from "./session-directory.ts";
import { groupRange, headRange, isGroup, readHead, type SessionHead, sessionOfHead } from "./session-entry.ts";

interface SessionSweepOptions {
  readonly store: Store;
  readonly cache: SessionCache;
  readonly groups: SessionCache;
  readonly log: SessionLog;
  readonly clock: Clock;
  /** A session that attempted nothing for so long is deleted, unless it is stopped. */
  readonly idleRetentionMs: number;
  /** Throws where the store cannot be read. */
  readonly isStopped: (tenant: string, session: string) => boolean;
  /** The tenants whose evidence can be written. */
  readonly tenants: () => readonly string[];
  readonly onFailure: (cause: Error) => void;
}

/** A session or a group of sessions that may be deleted, as read from the store. */
interface Candidate {
  readonly key: string;
  readonly text: string;
  readonly head: SessionHead;
}

const intervalMs = 3_600_000;
const maxPerBatch = 200;

/**
 * Deletes idle sessions, and what all sessions of an idle principal carry; keeps a summary of the sessions per tenant. In small
 * batches, each of them on record.
 */
export class SessionSweep {
  readonly #options: SessionSweepOptions;
  #timer: NodeJS.Timeout | undefined;
  #running: Promise<void> = Promise.resolve();
  #closed = false;

  constructor(options: SessionSweepOptions) {
    this.#options = options;
  }

  /** Sweeps now, and every hour. A failed sweep is repeated by the next. */
  start(): void {
    const run = (): void => {
      this.#running = this.#running.then(() => this.sweep()).catch((cause) => this.#options.onFailure(cause));
    };
    this.#timer = setInterval(run, intervalMs).unref();
    run();
  }

  /** Deletes all idle sessions; durable when it resolves. Rejects where that cannot be recorded. */
  async sweep(): Promise<void> {
    for (const tenant of this.#options.tenants()) await this.#sweepTenant(tenant);
  }

  /** Starts no further batch; resolves when the running one has ended. */
  async close(): Promise<void> {
    this.#closed = true;
    clearInterval(this.#timer);
    await this.#running;
  }

  async #sweepTenant(tenant: string): Promise<void> {
    const { store, clock, idleRetentionMs } = this.#options;
    const before = clock() - idleRetentionMs;
    let idle: Candidate[] = [];
    for (const range of [headRange(tenant), groupRange(tenant)]) {
      for await (const [key, text] of store.iterator(range)) {
        if (this.#closed) return;
        const candidate = candidateOf(key, text);
        if (candidate !== null && candidate.head.last < before) idle.push(candidate);
        if (idle.length < maxPerBatch) continue;
        await this.#deleteSessions(tenant, idle, before);
        idle = [];
      }
    }
    if (idle.length > 0) await this.#deleteSessions(tenant, idle, before);
  }

  async #deleteSessions(tenant: string, idle: readonly Candidate[], before: number): Promise<void> {
    const { cache, groups, log } = this.#options;
    const detail = { event: "forgotten", silent_since: new Date(before).toISOString() };
    await log.recordEvent(tenant, "session", detail, () => {
      // A session that acted since it was read stays: its next change is written after this.
      const gone = idle.filter((each) => {
        const from = isGroup(sessionOfHead(each.key)) ? groups : cache;
        return !this.#isKept(tenant, each) && from.forget(each.key, each.text);
      });
      const summary = gone
        .filter(({ key }) => !isGroup(sessionOfHead(key)))
        .map(({ head }) => summarize(head))
        .reduce(addForgotten, readForgotten(cache.read(summaryKey(tenant))));
      const put: BatchOperation = { type: "put", key: summaryKey(tenant), value: JSON.stringify(summary) };
      return [put, ...gone.map(({ key }): BatchOperation => ({ type: "del", key }))];
    });
  }

  /** A session that is stopped is kept, and so is what it stops. */
  #isKept(tenant: string, { key, head }: Candidate): boolean {
    const { isStopped } = this.#options;
    return [sessionOfHead(key), ...(head.stopped_by ?? [])].some((session) => isStopped(tenant, session));
  }
}

/** Returns null for a damaged head: the idle time of its session is unknown. */
function candidateOf(key: string, text: string): Candidate | null {
  try {
    return { key, text, head: readHead(sessionOfHead(key), text) };
  } catch (cause) {
    if (GatewayError.from(cause).code === "SESSION_DAMAGED") return null;
    throw cause;
  }
}

function summarize({ actions, risk: [points] }: SessionHead): ForgottenSessions {
  return { sessions: 1, actions, highest_risk: Math.ceil(points) };
}
