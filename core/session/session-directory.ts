import { GatewayError } from "../kernel/error.ts";
import type { Clock } from "../kernel/port.ts";
import type { PastAction } from "../kernel/session-state.ts";
import { rangeOf } from "../kernel/tenant-key.ts";
import type { SessionStore } from "./kill-index.ts";
import { type RiskLimit, RiskMeter } from "./risk-meter.ts";
import type { SessionBook } from "./session-book.ts";
import { headKey, headPrefix, readHead, type SessionHead, sessionOfHead } from "./session-head.ts";
import { type Listed, type Order, SessionRanking, type SessionSort } from "./session-ranking.ts";
import { type ForgottenSessions, readSummary, summaryKey } from "./session-summary.ts";

/** What an operator is told of a session. Of one whose state is damaged nothing else is known: it needs a reset. */
export type SessionView =
  | { readonly session: string; readonly state: "damaged" }
  | {
      readonly session: string;
      readonly state: "active" | "stopped";
      readonly principal: string;
      /** Whole points, drained to now. */
      readonly risk: number;
      /** Let through. */
      readonly actions: number;
      readonly reviews: number;
      readonly tools: number;
      readonly taints: readonly string[];
      /** When it last attempted something: RFC 3339, milliseconds, UTC. */
      readonly last_at: string;
    };

export interface SessionDetail extends Omit<Exclude<SessionView, { readonly state: "damaged" }>, "taints"> {
  readonly taints: readonly (Omit<SessionHead["taints"][number], "at"> & { readonly at: string })[];
  /** Its last actions, the latest first, as far as they are in memory; not where they reached to, which arguments say. */
  readonly history: readonly (Omit<PastAction, "at" | "hosts" | "paths"> & { readonly at: string })[];
}

export interface SessionPage {
  readonly items: readonly SessionView[];
  /** Where the next page begins; null after the last. */
  readonly next: string | null;
  readonly forgotten: ForgottenSessions;
}

export interface SessionDirectoryOptions {
  readonly store: SessionStore;
  readonly book: SessionBook;
  readonly limit: RiskLimit;
  readonly clock: Clock;
  readonly isStopped: (tenant: string, session: string) => boolean;
}

/** How sessions stand now, told to the people of their tenant. */
export class SessionDirectory {
  readonly #options: SessionDirectoryOptions;

  constructor(options: SessionDirectoryOptions) {
    this.#options = options;
  }

  /**
   * The sessions of a tenant, those with the highest risk, or the ones that acted last, first. What a session does
   * between two pages may move it from one to the other; time alone does not. Throws INVALID_PARAMS for a bad cursor.
   */
  async list(tenant: string, sort: SessionSort, limit: number, cursor?: string): Promise<SessionPage> {
    const ranking = new SessionRanking(sort, limit, this.#options.clock(), cursor);
    const heads = this.#options.store.iterator(rangeOf(headPrefix(tenant)));
    for await (const [key, text] of heads) ranking.add(this.#rank(key, text, ranking));
    const { items, next } = ranking.page();
    const forgotten = readSummary(this.#options.book.read(summaryKey(tenant)));
    return { items: items.map((item) => this.#view(tenant, item)), next, forgotten };
  }

  /** Throws NOT_FOUND for a session that nothing is known of. */
  checkKnown(tenant: string, session: string): void {
    const { book } = this.#options;
    const key = headKey(tenant, session);
    if (book.peek(key) === undefined && book.read(key) === undefined) throw notFound();
  }

  /** Throws NOT_FOUND for a session that nothing is known of, SESSION_STATE for one whose state is damaged. */
  show(tenant: string, session: string): SessionDetail {
    const { book, clock } = this.#options;
    const key = headKey(tenant, session);
    const entry = book.peek(key);
    const text = entry === undefined ? book.read(key) : undefined;
    if (entry === undefined && text === undefined) throw notFound();
    const head = entry?.head() ?? readHead(session, text ?? "");
    return {
      ...this.#describe(tenant, session, head, clock()),
      taints: head.taints.map(withTime),
      history: (entry?.history ?? []).map(({ hosts: _, paths: __, ...past }) => withTime(past)),
    };
  }

  #rank(key: string, text: string, order: Order): Listed {
    const session = sessionOfHead(key);
    const head = this.#options.book.peek(key)?.head() ?? readOrNull(session, text);
    // One that needs somebody comes before all that do not.
    if (head === null) return { session, head, value: Number.MAX_SAFE_INTEGER };
    return { session, head, value: order.sort === "last" ? head.last : this.#riskOf(head, order.now) };
  }

  #view(tenant: string, { session, head }: Listed): SessionView {
    if (head === null) return { session, state: "damaged" };
    const names = head.taints.map(({ name }) => name);
    return { ...this.#describe(tenant, session, head, this.#options.clock()), taints: names };
  }

  #describe(
    tenant: string,
    session: string,
    head: SessionHead,
    now: number,
  ): Omit<SessionDetail, "taints" | "history"> {
    return {
      session,
      state: this.#options.isStopped(tenant, session) ? "stopped" : "active",
      principal: head.principal,
      risk: this.#riskOf(head, now),
      actions: head.actions,
      reviews: head.reviews,
      tools: head.tool_count,
      last_at: timeOf(head.last),
    };
  }

  #riskOf({ risk }: SessionHead, now: number): number {
    return new RiskMeter(this.#options.limit, risk).score(now);
  }
}

function notFound(): GatewayError {
  return new GatewayError("NOT_FOUND", "no such session");
}

function readOrNull(session: string, text: string): SessionHead | null {
  try {
    return readHead(session, text);
  } catch {
    return null;
  }
}

function withTime<T extends { readonly at: number }>(item: T): Omit<T, "at"> & { readonly at: string } {
  return { ...item, at: timeOf(item.at) };
}

function timeOf(ms: number): string {
  return new Date(ms).toISOString();
}
