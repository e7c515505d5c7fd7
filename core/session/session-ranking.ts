import { GatewayError } from "../kernel/error.ts";
import { isJsonObject } from "../kernel/json.ts";
import { parseKept } from "../kernel/kept-json.ts";
import type { SessionHead } from "./session-head.ts";

export const sessionSorts = ["risk", "last"] as const;
export type SessionSort = (typeof sessionSorts)[number];

/** By what sessions are ordered; risk is told as it is at `now` on every page. */
export interface Order {
  readonly sort: SessionSort;
  /** Milliseconds since 1970. */
  readonly now: number;
}

/** A session with the value it is ordered by; without head where that is damaged. */
export interface Listed {
  readonly session: string;
  readonly head: SessionHead | null;
  readonly value: number;
}

type Place = Pick<Listed, "session" | "value">;

/** Picks one page out of any number of sessions, in memory of that page. */
export class SessionRanking implements Order {
  readonly sort: SessionSort;
  readonly now: number;
  readonly #limit: number;
  readonly #after: Place | null;
  /** In order; one more than the page holds. */
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
    this.#best.splice(this.#placeOf(listed), 0, listed);
    if (this.#best.length > this.#limit + 1) this.#best.pop();
  }

  page(): { readonly items: readonly Listed[]; readonly next: string | null } {
    const items = this.#best.slice(0, this.#limit);
    const last = items.at(-1);
    const isLast = last === undefined || this.#best.length <= this.#limit;
    return { items, next: isLast ? null : writeCursor(this, last) };
  }

  /** Where it goes among the best, found by halving. */
  #placeOf(listed: Listed): number {
    let [low, high] = [0, this.#best.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (comesBefore(this.#best[middle] as Listed, listed)) low = middle + 1;
      else high = middle;
    }
    return low;
  }
}

function comesBefore(one: Place, other: Place): boolean {
  return one.value === other.value ? one.session < other.session : one.value > other.value;
}

function writeCursor({ sort, now }: Order, { session, value }: Place): string {
  return Buffer.from(JSON.stringify({ sort, now, session, value })).toString("base64url");
}

function readCursor(text: string, sort: SessionSort): { readonly now: number; readonly after: Place } {
  const cursor = parseKept(Buffer.from(text, "base64url").toString());
  if (isJsonObject(cursor) && cursor.sort === sort) {
    const { now, session, value } = cursor;
    if (typeof now === "number" && typeof session === "string" && typeof value === "number") {
      return { now, after: { session, value } };
    }
  }
  throw new GatewayError("INVALID_PARAMS", "expected `cursor` to be the `next` of a page of the same order");
}
