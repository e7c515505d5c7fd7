import type { BatchOperation } from "../action/commit-hook.ts";
import { GatewayError } from "../action/error.ts";
import { RecentMap } from "../action/recent-map.ts";
import type { Store } from "../store/open.ts";
import type { RiskLimit } from "./risk-meter.ts";
import { headKey, readHead, SessionEntry } from "./session-entry.ts";

export interface SessionCacheObserver {
  /** Reports the number of sessions in memory when it changes. */
  watchedSessions(count: number): void;
}

interface SessionCacheOptions {
  readonly store: Store;
  readonly limit: RiskLimit;
  /** Sessions kept in memory, beside those in use. */
  readonly capacity: number;
  readonly observer: SessionCacheObserver;
}

/** Bytes of history per session on average. */
const averageHistorySize = 8_192;

/**
 * The sessions in memory: at most `capacity` beside those in use, and only as many as have room for their histories. The
 * least recently used are evicted, and come back from the head in the store, without their history.
 *
 * INVARIANT: an entry is pinned while a change of it is not durable. So what is read from the store is never outdated.
 */
export class SessionCache {
  readonly #options: SessionCacheOptions;
  readonly #entries = new RecentMap<SessionEntry>();
  /** The part of each entry in `#historySize`. */
  readonly #countedSizes = new WeakMap<SessionEntry, number>();
  #historySize = 0;

  constructor(options: SessionCacheOptions) {
    this.#options = options;
  }

  /** The number of sessions in memory. */
  get size(): number {
    return this.#entries.size;
  }

  /** Returns the entry of a session; a new one for a new session. Throws as `find` does. Runs for every action. */
  open(tenant: string, session: string, principal: string): SessionEntry {
    const key = headKey(tenant, session);
    const known = this.#entries.get(key) ?? this.#load(key, session);
    return known ?? this.#keep(key, new SessionEntry(principal, this.#options.limit));
  }

  /**
   * Returns the entry of a session; undefined for an unknown one. Throws SESSION_DAMAGED where its stored head is damaged,
   * and EVIDENCE_UNAVAILABLE where the store cannot be read.
   */
  find(tenant: string, session: string): SessionEntry | undefined {
    const key = headKey(tenant, session);
    return this.#entries.get(key) ?? this.#load(key, session);
  }

  /** Returns the entry of a session in memory, without marking it as used. */
  peek(key: string): SessionEntry | undefined {
    return this.#entries.peek(key);
  }

  /** Returns the operation that stores the entry as it is now. */
  put(tenant: string, session: string, entry: SessionEntry): BatchOperation {
    const key = headKey(tenant, session);
    if (this.#entries.get(key) === entry) {
      const size = entry.historySize + (entry.values?.size ?? 0) + (entry.secrets?.size ?? 0);
      this.#historySize += size - (this.#countedSizes.get(entry) ?? 0);
      this.#countedSizes.set(entry, size);
    }
    return { type: "put", key, value: JSON.stringify(entry.head()) };
  }

  /** Counts the memory of an entry anew that remembers more values than before. */
  weigh(tenant: string, session: string, entry: SessionEntry): void {
    if (this.#entries.peek(headKey(tenant, session)) !== entry) return;
    const size = entry.historySize + (entry.values?.size ?? 0) + (entry.secrets?.size ?? 0);
    this.#historySize += size - (this.#countedSizes.get(entry) ?? 0);
    this.#countedSizes.set(entry, size);
  }

  /** Reads the text of a stored head. Throws EVIDENCE_UNAVAILABLE where the store cannot be read. */
  read(key: string): string | undefined {
    try {
      return this.#options.store.getSync(key);
    } catch (cause) {
      throw new GatewayError("EVIDENCE_UNAVAILABLE", "sessions cannot be read from the store", { cause });
    }
  }

  /** Evicts a session whose head is to be deleted; false where it is in use, or its stored head is no longer `text`. */
  forget(key: string, text: string): boolean {
    const isPinned = (this.#entries.peek(key)?.pins ?? 0) > 0;
    if (isPinned || this.read(key) !== text) return false;
    this.#evict(key);
    return true;
  }

  #load(key: string, session: string): SessionEntry | undefined {
    const text = this.read(key);
    if (text === undefined) return undefined;
    const head = readHead(session, text);
    return this.#keep(key, new SessionEntry(head.principal, this.#options.limit, head));
  }

  #keep(key: string, entry: SessionEntry): SessionEntry {
    this.#makeRoom();
    this.#entries.set(key, entry);
    this.#options.observer.watchedSessions(this.#entries.size);
    return entry;
  }

  #makeRoom(): void {
    if (this.#hasRoom()) return;
    for (const [key, { pins }] of this.#entries.entries()) {
      if (pins === 0) this.#evict(key);
      if (this.#hasRoom()) return;
    }
  }

  #evict(key: string): void {
    const entry = this.#entries.peek(key);
    if (entry === undefined) return;
    this.#historySize -= this.#countedSizes.get(entry) ?? 0;
    this.#countedSizes.delete(entry);
    this.#entries.delete(key);
    this.#options.observer.watchedSessions(this.#entries.size);
  }

  #hasRoom(): boolean {
    const { capacity } = this.#options;
    return this.#entries.size < capacity && this.#historySize <= capacity * averageHistorySize;
  }
}
