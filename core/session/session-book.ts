import type { Operation } from "../kernel/operation.ts";
import type { SessionStore } from "./kill-index.ts";
import { SessionEntry } from "./session-entry.ts";
import { headKey, readHead, writeHead } from "./session-head.ts";

/**
 * The sessions that act now, at most `capacity` of them and those that are in use. The ones that were silent longest
 * leave memory; of these the store keeps the head, from which they come back without their history.
 *
 * INVARIANT: an entry stays in memory from its change until the change is durable, so the store is never behind what is
 * read from it.
 */
export class SessionBook {
  readonly #store: SessionStore;
  readonly #capacity: number;
  readonly #entries = new Map<string, SessionEntry>();

  constructor(store: SessionStore, capacity: number) {
    this.#store = store;
    this.#capacity = capacity;
  }

  /** How many are in memory. */
  get size(): number {
    return this.#entries.size;
  }

  /** The session's entry. Throws SESSION_STATE where what is kept of it is damaged, and what the store throws. */
  open(tenant: string, session: string, principal: string): SessionEntry {
    const key = headKey(tenant, session);
    const known = this.#entries.get(key);
    if (known !== undefined) this.#entries.delete(key);
    const entry = known ?? this.#load(key, session, principal);
    this.#makeRoom();
    this.#entries.set(key, entry);
    return entry;
  }

  /** Sets what is kept of a session aside, damaged or not. */
  renew(tenant: string, session: string, principal: string): SessionEntry {
    try {
      return this.open(tenant, session, principal);
    } catch {
      const entry = new SessionEntry(principal, undefined);
      this.#makeRoom();
      this.#entries.set(headKey(tenant, session), entry);
      return entry;
    }
  }

  /** Has the store keep the entry as it is now. */
  put(tenant: string, session: string, entry: SessionEntry): Operation {
    return { type: "put", key: headKey(tenant, session), value: writeHead(entry.head()) };
  }

  #load(key: string, session: string, principal: string): SessionEntry {
    const text = this.#store.getSync(key);
    return new SessionEntry(principal, text === undefined ? undefined : readHead(session, text));
  }

  #makeRoom(): void {
    if (this.#entries.size < this.#capacity) return;
    for (const [key, { pins }] of this.#entries) {
      if (pins === 0) this.#entries.delete(key);
      if (this.#entries.size < this.#capacity) return;
    }
  }
}
