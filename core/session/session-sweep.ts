import type { BatchOperation } from "../action/commit-hook.ts";
import { GatewayError } from "../action/error.ts";
import type { Clock } from "../action/id.ts";
import type { SessionLog, SessionStore } from "../kill/kill-store.ts";
import { rangeOf } from "../store/key-range.ts";
import type { SessionBook } from "./session-book.ts";
import { addSummary, type ForgottenSessions, readSummary, summaryKey } from "./session-directory.ts";
import { headPrefix, readHead, type SessionHead, sessionOfHead } from "./session-head.ts";

interface SessionSweepOptions {
  readonly store: SessionStore;
  readonly book: SessionBook;
  readonly log: SessionLog;
  readonly clock: Clock;
  /** A session that attempted nothing for so long is forgotten, unless it is stopped. */
  readonly forgetMs: number;
  /** Throws where that cannot be known. */
  readonly isStopped: (tenant: string, session: string) => boolean;
  /** Those whose evidence can be written. */
  readonly tenants: () => readonly string[];
  readonly onFailure: (cause: Error) => void;
}

/** A session that may be forgotten, as the store had it. */
interface Candidate {
  readonly key: string;
  readonly text: string;
  readonly head: SessionHead;
}

const intervalMs = 3_600_000;
/** How many are forgotten in one turn of the event loop. */
const maxAtOnce = 200;

/** Forgets sessions that are long silent: of all of a tenant's a summary stays. In small steps, each of them on record. */
export class SessionSweep {
  readonly #options: SessionSweepOptions;
  #timer: NodeJS.Timeout | undefined;
  #running: Promise<void> = Promise.resolve();
  #closed = false;

  constructor(options: SessionSweepOptions) {
    this.#options = options;
  }

  /** Sweeps now, and every hour. What fails is tried again with the next. */
  start(): void {
    const run = (): void => {
      this.#running = this.#running.then(() => this.sweep()).catch((cause) => this.#options.onFailure(cause));
    };
    this.#timer = setInterval(run, intervalMs).unref();
    run();
  }

  /** Resolves when every session that was silent too long is forgotten, durable. Rejects where that cannot be recorded. */
  async sweep(): Promise<void> {
    for (const tenant of this.#options.tenants()) await this.#sweepTenant(tenant);
  }

  /** Begins no further step; resolves when the one that runs has ended. */
  async close(): Promise<void> {
    this.#closed = true;
    clearInterval(this.#timer);
    await this.#running;
  }

  async #sweepTenant(tenant: string): Promise<void> {
    const { store, clock, forgetMs } = this.#options;
    const before = clock() - forgetMs;
    let silent: Candidate[] = [];
    for await (const [key, text] of store.iterator(rangeOf(headPrefix(tenant)))) {
      if (this.#closed) return;
      const candidate = candidateOf(key, text);
      if (candidate !== null && candidate.head.last < before) silent.push(candidate);
      if (silent.length < maxAtOnce) continue;
      await this.#forget(tenant, silent, before);
      silent = [];
    }
    if (silent.length > 0) await this.#forget(tenant, silent, before);
  }

  async #forget(tenant: string, silent: readonly Candidate[], before: number): Promise<void> {
    const { book, log, isStopped } = this.#options;
    const detail = { event: "forgotten", silent_since: new Date(before).toISOString() };
    await log.recordEvent(tenant, "session", detail, () => {
      // What came back since it was read stays: its next change is written behind this.
      const gone = silent.filter(({ key, text }) => !isStopped(tenant, sessionOfHead(key)) && book.forget(key, text));
      const summary = gone
        .map(({ head }) => summaryOf(head))
        .reduce(addSummary, readSummary(book.read(summaryKey(tenant))));
      const put: BatchOperation = { type: "put", key: summaryKey(tenant), value: JSON.stringify(summary) };
      return [put, ...gone.map(({ key }): BatchOperation => ({ type: "del", key }))];
    });
  }
}

/** Null for a session whose head is damaged: it is not known how long it was silent. */
function candidateOf(key: string, text: string): Candidate | null {
  try {
    return { key, text, head: readHead(sessionOfHead(key), text) };
  } catch (cause) {
    if (GatewayError.from(cause).code === "SESSION_STATE") return null;
    throw cause;
  }
}

function summaryOf({ actions, risk: [points] }: SessionHead): ForgottenSessions {
  return { sessions: 1, actions, highest_risk: Math.ceil(points) };
}
