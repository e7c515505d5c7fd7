import type { BatchOperation } from "../action/commit-hook.ts";
import { GatewayError } from "../action/error.ts";
import type { JsonObject } from "../action/json.ts";
import { RecentMap } from "../action/recent-map.ts";
import { type Kill, killKey, killTold, targetTold } from "../kill/kill.ts";
import type { SessionStore } from "../kill/kill-store.ts";
import type { KillSwitch } from "../kill/kill-switch.ts";
import type { RiskLimit } from "./risk-meter.ts";
import { SessionEntry } from "./session-entry.ts";
import { headKey, readHead, type SessionHead, writeHead } from "./session-head.ts";

interface SessionBookOptions {
  readonly store: SessionStore;
  readonly limit: RiskLimit;
  /** Sessions kept in memory, beside those in use. */
  readonly capacity: number;
}

/** What a session's history may take on average, in bytes. */
const usualHistory = 8_192;

/**
 * The sessions that act now, at most `capacity` of them and those that are in use, and no more of them than their
 * histories have room. The ones that were silent longest are folded: they leave memory, and come back from the head
 * that the store keeps, without their history.
 *
 * INVARIANT: whoever changes an entry holds a pin on it until the change is durable, or its action is refused. So the
 * store is never behind what is read from it.
 */
export class SessionBook {
  readonly #options: SessionBookOptions;
  readonly #entries = new RecentMap<SessionEntry>();
  /** What of each entry's history is in `#historySize`. */
  readonly #counted = new WeakMap<SessionEntry, number>();
  #historySize = 0;

  constructor(options: SessionBookOptions) {
    this.#options = options;
  }

  /** How many are in memory. */
  get size(): number {
    return this.#entries.size;
  }

  /** The session's entry; a new one for a session that begins. Throws as `find` does. */
  open(tenant: string, session: string, principal: string): SessionEntry {
    const found = this.find(tenant, session);
    if (found !== undefined) return found;
    const entry = new SessionEntry(principal, this.#options.limit);
    this.#keep(headKey(tenant, session), entry);
    return entry;
  }

  /**
   * The session's entry; undefined for one that nothing is known of. Throws SESSION_STATE where what is kept of it is
   * damaged, and EVIDENCE_UNAVAILABLE where the store cannot be read.
   */
  find(tenant: string, session: string): SessionEntry | undefined {
    const key = headKey(tenant, session);
    const known = this.#entries.get(key);
    if (known !== undefined) return known;
    const entry = this.#load(key, session);
    if (entry !== undefined) this.#keep(key, entry);
    return entry;
  }

  /** The entry of a session that is in memory. */
  peek(key: string): SessionEntry | undefined {
    return this.#entries.peek(key);
  }

  /** Has the store keep the entry as it is now. */
  put(tenant: string, session: string, entry: SessionEntry): BatchOperation {
    const key = headKey(tenant, session);
    if (this.#entries.peek(key) === entry) this.#count(entry, entry.historySize);
    return { type: "put", key, value: writeHead(entry.head()) };
  }

  /** The text of a session's head, as the store has it. Throws EVIDENCE_UNAVAILABLE where it cannot be read. */
  read(key: string): string | undefined {
    try {
      return this.#options.store.getSync(key);
    } catch (cause) {
      throw new GatewayError("EVIDENCE_UNAVAILABLE", "what is kept of sessions cannot be read", { cause });
    }
  }

  /** Lets go of a session whose head is to be deleted; false where somebody uses it, or the head is another by now. */
  forget(key: string, text: string): boolean {
    return !this.#isUsed(key) && this.read(key) === text && this.#fold(key);
  }

  #load(key: string, session: string): SessionEntry | undefined {
    const text = this.read(key);
    if (text === undefined) return undefined;
    const head: SessionHead = readHead(session, text);
    return new SessionEntry(head.principal, this.#options.limit, head);
  }

  #keep(key: string, entry: SessionEntry): void {
    this.#makeRoom();
    this.#entries.set(key, entry);
  }

  #makeRoom(): void {
    if (this.#hasRoom()) return;
    for (const [key, { pins }] of this.#entries.entries()) {
      if (pins === 0) this.#fold(key);
      if (this.#hasRoom()) return;
    }
  }

  #isUsed(key: string): boolean {
    return (this.#entries.peek(key)?.pins ?? 0) > 0;
  }

  #fold(key: string): true {
    const entry = this.#entries.peek(key);
    if (entry !== undefined) this.#count(entry, 0);
    this.#entries.delete(key);
    return true;
  }

  #hasRoom(): boolean {
    const { capacity } = this.#options;
    return this.#entries.size < capacity && this.#historySize <= capacity * usualHistory;
  }

  #count(entry: SessionEntry, size: number): void {
    this.#historySize += size - (this.#counted.get(entry) ?? 0);
    this.#counted.set(entry, size);
  }
}

/** An event of kind `session`, and when it was recorded. */
export interface SessionEvent {
  readonly time: string;
  readonly detail: JsonObject;
}

interface RestoreParts {
  /** Those whose evidence is not refused. */
  readonly tenants: readonly string[];
  /** A tenant's session events in the order of its chain. */
  readonly events: (tenant: string) => AsyncIterable<SessionEvent>;
  /** Called for a tenant whose events cannot be read: nobody knows what of it is stopped. */
  readonly refuse: (tenant: string, reason: string) => void;
}

/**
 * Stops again what a tenant's chain says is stopped and the store has no entry of. Where the two disagree, the stricter
 * holds: an entry without its event stops what it names too. Where one tenant has the whole gateway stopped, all have.
 */
export async function restoreKills(killSwitch: KillSwitch, parts: RestoreParts): Promise<void> {
  for (const tenant of parts.tenants) {
    try {
      await killSwitch.restore(tenant, await readKills(tenant, parts.events(tenant)));
    } catch (cause) {
      parts.refuse(tenant, `what is stopped cannot be read: ${GatewayError.from(cause).message}`);
    }
  }
  await killSwitch.welcomeTenants();
}

async function readKills(tenant: string, events: AsyncIterable<SessionEvent>): Promise<Iterable<Kill>> {
  const kills = new Map<string, Kill>();
  for await (const { time, detail } of events) {
    if (detail.event === "released") kills.delete(killKey(tenant, targetTold(detail)));
    if (detail.event === "killed") kills.set(killKey(tenant, targetTold(detail)), killTold(detail, time));
  }
  return kills.values();
}
