import { GatewayError } from "../action/error.ts";
import type { Clock } from "../action/id.ts";
import { isJsonObject, parseKept } from "../action/json.ts";
import type { PastAction } from "../action/session-state.ts";
import { tenantPrefix } from "../store/key-range.ts";
import type { Store } from "../store/open.ts";
import { type RiskLimit, RiskMeter } from "./risk-meter.ts";
import type { SessionCache } from "./session-cache.ts";
import { headKey, headRange, readHead, type SessionHead, sessionOfHead } from "./session-entry.ts";

/** A session as an operator sees it. One whose state is damaged needs a reset. */
export type SessionView =
  | { readonly session: string; readonly state: "damaged" }
  | {
      readonly session: string;
      readonly state: "active" | "stopped";
      readonly principal: string;
      /** Whole points, drained to now. */
      readonly risk: number;
      /** Dispatched actions. */
      readonly actions: number;
      readonly reviews: number;
      readonly tools: number;
      readonly taints: readonly string[];
      /** Time of the last attempted action: RFC 3339, milliseconds, UTC. */
      readonly last_at: string;
    };

export interface SessionDetail extends Omit<Exclude<SessionView, { readonly state: "damaged" }>, "taints"> {
  readonly taints: readonly (Omit<SessionHead["taints"][number], "at"> & { readonly at: string })[];
  /** The last actions in memory, the latest first, without their hosts and paths, which come from arguments. */
  readonly history: readonly (Omit<PastAction, "at" | "hosts" | "paths"> & { readonly at: string })[];
}

export interface SessionPage {
  readonly items: readonly SessionView[];
  /** The cursor of the next page; null after the last. */
  readonly next: string | null;
  readonly forgotten: ForgottenSessions;
}

interface SessionDirectoryOptions {
  readonly store: Store;
  readonly cache: SessionCache;
  readonly limit: RiskLimit;
  readonly clock: Clock;
  readonly isStopped: (tenant: string, session: string) => boolean;
}

/** Lists and shows the sessions of a tenant. */
export class SessionDirectory {
  readonly #options: SessionDirectoryOptions;

  constructor(options: SessionDirectoryOptions) {
    this.#options = options;
  }

  /**
   * Lists the sessions of a tenant by risk, the highest first, or by last action, the latest first. An action between two
   * pages may move its session from one to the other; time alone does not. Throws INVALID_PARAMS for a bad cursor.
   */
  async list(tenant: string, sort: SessionSort, limit: number, cursor?: string): Promise<SessionPage> {
    const ranking = new SessionRanking(sort, limit, this.#options.clock(), cursor);
    const heads = this.#options.store.iterator(headRange(tenant));
    for await (const [key, text] of heads) ranking.add(this.#rank(key, text, ranking));
    const { items, next } = ranking.page();
    const forgotten = readForgotten(this.#options.cache.read(summaryKey(tenant)));
    return { items: items.map((item) => this.#view(tenant, item)), next, forgotten };
  }

  /** Throws NOT_FOUND for an unknown session. */
  checkKnown(tenant: string, session: string): void {
    const { cache } = this.#options;
    const key = headKey(tenant, session);
    if (cache.peek(key) === undefined && cache.read(key) === undefined) throw notFound();
  }

  /** Throws NOT_FOUND for an unknown session, SESSION_DAMAGED for one whose state is damaged. */
  show(tenant: string, session: string): SessionDetail {
    const { cache, clock } = this.#options;
    const key = headKey(tenant, session);
    const entry = cache.peek(key);
    const text = entry === undefined ? cache.read(key) : undefined;
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
    const head = this.#options.cache.peek(key)?.head() ?? readOrNull(session, text);
    // A session that needs a reset comes first.
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

/** The summary of the deleted sessions of a tenant. */
export interface ForgottenSessions {
  readonly sessions: number;
  /** All dispatched actions of them. */
  readonly actions: number;
  /** The highest risk that any of them had after its last action. */
  readonly highest_risk: number;
}

const none: ForgottenSessions = { sessions: 0, actions: 0, highest_risk: 0 };

export function summaryKey(tenant: string): string {
  return `${tenantPrefix(tenant)}session-summary`;
}

/** Parses the stored summary. A damaged one counts as empty, which is harmless: it permits nothing. */
export function readForgotten(text: string | undefined): ForgottenSessions {
  const summary = text === undefined ? null : parseKept(text);
  if (!isJsonObject(summary)) return none;
  const { sessions, actions, highest_risk: highest } = summary;
  return [sessions, actions, highest].every((count) => Number.isSafeInteger(count))
    ? (summary as unknown as ForgottenSessions)
    : none;
}

export function addForgotten(one: ForgottenSessions, other: ForgottenSessions): ForgottenSessions {
  return {
    sessions: one.sessions + other.sessions,
    actions: one.actions + other.actions,
    highest_risk: Math.max(one.highest_risk, other.highest_risk),
  };
}

export const sessionSorts = ["risk", "last"] as const;
export type SessionSort = (typeof sessionSorts)[number];

/** The order of a list; every page computes the risk at `now`. */
interface Order {
  readonly sort: SessionSort;
  /** Milliseconds since 1970. */
  readonly now: number;
}

/** A session with the value it is sorted by; without head where that is damaged. */
export interface Listed {
  readonly session: string;
  readonly head: SessionHead | null;
  readonly value: number;
}

type Position = Pick<Listed, "session" | "value">;

/** Selects one page out of any number of sessions, in the memory of that page. */
export class SessionRanking implements Order {
  readonly sort: SessionSort;
  readonly now: number;
  readonly #limit: number;
  readonly #after: Position | null;
  /** Sorted; one more than the page has. */
  readonly #best: Listed[] = [];

  /** Throws INVALID_PARAMS for a cursor that is not the `next` of a page of the same order. */
  constructor(sort: SessionSort, limit: number, now: number, cursor?: string) {
    const start = cursor === undefined ? { now, after: null } : readCursor(cursor, sort);
    this.sort = sort;
    this.now = start.now;
    this.#after = start.after;
    this.#limit = limit;
  }

  add(listed: Listed): void {
    if (this.#after !== null && !comesBefore(this.#after, listed)) return;
    const last = this.#best.at(-1);
    if (last !== undefined && this.#best.length > this.#limit && !comesBefore(listed, last)) return;
    this.#best.splice(this.#findIndex(listed), 0, listed);
    if (this.#best.length > this.#limit + 1) this.#best.pop();
  }

  page(): { readonly items: readonly Listed[]; readonly next: string | null } {
    const items = this.#best.slice(0, this.#limit);
    const last = items.at(-1);
    const isLast = last === undefined || this.#best.length <= this.#limit;
    return { items, next: isLast ? null : writeCursor(this, last) };
  }

  /** Finds the insertion index by binary search. */
  #findIndex(listed: Listed): number {
    let [low, high] = [0, this.#best.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (comesBefore(this.#best[middle] as Listed, listed)) low = middle + 1;
      else high = middle;
    }
    return low;
  }
}

function comesBefore(one: Position, other: Position): boolean {
  return one.value === other.value ? one.session < other.session : one.value > other.value;
}

function writeCursor({ sort, now }: Order, { session, value }: Position): string {
  return Buffer.from(JSON.stringify({ sort, now, session, value })).toString("base64url");
}

function readCursor(text: string, sort: SessionSort): { readonly now: number; readonly after: Position } {
  const cursor = parseKept(Buffer.from(text, "base64url").toString());
  if (isJsonObject(cursor) && cursor.sort === sort) {
    const { now, session, value } = cursor;
    if (typeof now === "number" && typeof session === "string" && typeof value === "number") {
      return { now, after: { session, value } };
    }
  }
  throw new GatewayError("INVALID_PARAMS", "expected `cursor` to be the `next` of a page of the same order");
}
