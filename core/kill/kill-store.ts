import type { AbstractLevel } from "abstract-level";
import type { BatchOperation, CommitHook } from "../action/commit-hook.ts";
import { GatewayError } from "../action/error.ts";
import type { JsonObject } from "../action/json.ts";
import { RecentMap } from "../action/recent-map.ts";
import {
  type Kill,
  type KillScope,
  type KillTarget,
  killedDetail,
  killKey,
  killPrefix,
  killRange,
  readKill,
  releasedDetail,
  targetIn,
} from "./kill.ts";

/** Where an event and what it tells of become durable together, or not at all. */
export interface SessionLog {
  /** A function of `operations` is called in the turn in which the event gets its place in the chain. */
  recordEvent(
    tenant: string,
    kind: "session",
    detail: JsonObject,
    operations: readonly BatchOperation[] | (() => readonly BatchOperation[]),
  ): Promise<void>;
}

export interface KillBookOptions {
  readonly store: SessionStore;
  readonly log: SessionLog;
  /** Called when a release begins. */
  readonly onRelease: (tenant: string, target: KillTarget) => CommitHook;
  /** A kill that could not be recorded is recorded again after so long; 1 s unless told. */
  readonly retryMs?: number;
}

export interface KillPage {
  readonly items: readonly Kill[];
  /** Where the next page begins; null after the last. */
  readonly next: string | null;
}

export interface PageOf {
  readonly limit: number;
  /** The `next` of the page before. */
  readonly cursor?: string;
  /** Kills of this scope alone; each scope has cursors of its own. */
  readonly scope?: KillScope;
}

/** Something whose last change is not durable yet. It is stopped whatever the store says. */
interface Held {
  readonly tenant: string;
  readonly kill: Kill;
  readonly isReleasing: boolean;
  /** Settles with the latest attempt to record the change. */
  attempt: Promise<void>;
}

const maxHeld = 10_000;
const usualRetryMs = 1_000;

/**
 * What is stopped in each tenant, on its record and in the store.
 *
 * INVARIANT: a kill is in force before it is recorded, a release only once it is durable.
 */
export class KillBook {
  readonly #options: KillBookOptions;
  readonly #index: KillIndex;
  readonly #held = new Map<string, Held>();
  /** Whether a tenant ever had a kill, as far as that was found out. */
  readonly #everKilled = new Map<string, boolean>();
  #closed = false;

  constructor(options: KillBookOptions) {
    this.#options = options;
    this.#index = new KillIndex(options.store);
  }

  /** Finds out whether anything is stopped in a tenant: where nothing is, its actions need no further look-up. */
  async survey(tenant: string): Promise<void> {
    const kills = await this.#index.list(killPrefix(tenant), 1);
    // What was stopped while the store was read stays known.
    if (!this.#everKilled.has(tenant)) this.#everKilled.set(tenant, kills.size > 0);
  }

  /** True only where nothing is, or was since the start, stopped in this tenant. */
  isClear(tenant: string): boolean {
    return this.#everKilled.get(tenant) === false;
  }

  /** Throws where the store cannot be read. */
  has(tenant: string, target: KillTarget): boolean {
    const key = killKey(tenant, target);
    return this.#held.has(key) || this.#index.has(key);
  }

  /** Whether the last change of it is still to become durable. */
  isUnsettled(tenant: string, target: KillTarget): boolean {
    return this.#held.has(killKey(tenant, target));
  }

  /** What stands stopped, with who stopped it and why. */
  async find(tenant: string, target: KillTarget): Promise<Kill | undefined> {
    const key = killKey(tenant, target);
    return this.#held.get(key)?.kill ?? (await this.#index.read(key));
  }

  /**
   * As `hold`. Throws SESSION_STATE for what is stopped already, and EVIDENCE_UNAVAILABLE where too many kills wait for
   * the disk.
   */
  kill(tenant: string, kill: Kill): Promise<void> {
    const key = killKey(tenant, kill);
    const before = this.#held.get(key);
    if (before === undefined ? this.#isStored(key) : !before.isReleasing) throw conflict("killed", alreadyStopped);
    if (this.#held.size >= maxHeld) {
      throw new GatewayError("EVIDENCE_UNAVAILABLE", `expected at most ${maxHeld} kills to wait to be recorded`);
    }
    return this.hold(tenant, kill);
  }

  /**
   * Puts a kill in force, and on record behind what is being recorded of its target; again and again until it is. The
   * promise settles with the first attempt.
   */
  hold(tenant: string, kill: Kill): Promise<void> {
    const key = killKey(tenant, kill);
    const after = this.#held.get(key)?.attempt ?? Promise.resolve();
    const held: Held = { tenant, kill, isReleasing: false, attempt: after };
    this.#everKilled.set(tenant, true);
    this.#held.set(key, held);
    held.attempt = after.catch(() => undefined).then(() => this.#record(key, held));
    held.attempt.catch(() => this.#recordLater(key, held));
    return held.attempt;
  }

  /**
   * Lets it act again, once that is durable. Where it cannot be recorded, this rejects with EVIDENCE_UNAVAILABLE and it
   * stays stopped. Rejects with SESSION_STATE for what is not stopped, or whose last change is not durable yet.
   */
  async release(tenant: string, target: KillTarget, by: string, reason: string): Promise<void> {
    const key = killKey(tenant, target);
    const kill = await this.#index.read(key);
    if (this.#held.has(key)) throw conflict("killed", notRecordedYet);
    if (kill === undefined || !this.#index.has(key)) throw conflict("active", notStopped);
    const detail = releasedDetail(target, by, reason);
    const commitHook = this.#options.onRelease(tenant, target);
    const attempt = this.#options.log.recordEvent(tenant, "session", detail, () => [
      { type: "del", key },
      ...commitHook.operations(),
    ]);
    const held: Held = { tenant, kill, isReleasing: true, attempt };
    this.#held.set(key, held);
    try {
      await attempt;
    } catch (error) {
      // It may be on disk nonetheless. What is in force is recorded again, so that the next start finds it.
      if (this.#held.get(key) === held) this.hold(tenant, kill).catch(() => undefined);
      throw error;
    } finally {
      commitHook.end();
    }
    this.#settle(key, held, false);
  }

  /** What is stopped in a tenant, in the order of its keys. */
  async list(tenant: string, { limit, cursor, scope }: PageOf): Promise<KillPage> {
    const prefix = killPrefix(tenant, scope);
    const kills = await this.#index.list(prefix, limit + 1, cursor);
    const { gt, lt } = killRange(prefix, cursor);
    for (const [key, { kill }] of this.#held) if (key > gt && key < lt) kills.set(key, kill);
    const keys = [...kills.keys()].sort();
    const page = keys.slice(0, limit);
    const next = keys.length > limit ? (page.at(-1)?.slice(prefix.length) ?? null) : null;
    return { items: page.map((key) => kills.get(key) as Kill), next };
  }

  /** Records nothing any more. What is in force stays in force. */
  close(): void {
    this.#closed = true;
  }

  async #record(key: string, held: Held): Promise<void> {
    const entry: BatchOperation = { type: "put", key, value: JSON.stringify(held.kill) };
    await this.#options.log.recordEvent(held.tenant, "session", killedDetail(held.kill), [entry]);
    this.#settle(key, held, true);
  }

  #recordLater(key: string, held: Held): void {
    const attempt = (): void => {
      if (this.#closed || this.#held.get(key) !== held) return;
      held.attempt = this.#record(key, held);
      held.attempt.catch(() => this.#recordLater(key, held));
    };
    setTimeout(attempt, this.#options.retryMs ?? usualRetryMs).unref();
  }

  /** The disk holds what `held` said, unless somebody has said something else since. */
  #settle(key: string, held: Held, isKilled: boolean): void {
    if (this.#held.get(key) !== held) return;
    this.#index.remember(key, isKilled);
    this.#held.delete(key);
  }

  /** A store that cannot be read keeps nobody from stopping anything. */
  #isStored(key: string): boolean {
    try {
      return this.#index.has(key);
    } catch {
      return false;
    }
  }
}

export const alreadyStopped = "it is stopped already";
export const notRecordedYet = "its last change is not recorded yet; try again";
export const notStopped = "it is not stopped";

export function conflict(state: "active" | "killed", detail: string): GatewayError {
  return new GatewayError("SESSION_STATE", `\`${state}\`: ${detail}`, { data: { state } });
}

/** The database as this folder reads it; it writes through the evidence alone. */
export type SessionStore = AbstractLevel<string | Buffer | Uint8Array, string, string>;

const maxRemembered = 10_000;

/** Which keys have an entry in the store. Remembers the answers asked for last; others are read again. */
class KillIndex {
  readonly #store: SessionStore;
  readonly #remembered = new RecentMap<boolean>();

  constructor(store: SessionStore) {
    this.#store = store;
  }

  /** Throws what the store throws where it cannot be read: then nobody knows, and nothing may be dispatched. */
  has(key: string): boolean {
    const known = this.#remembered.get(key);
    if (known !== undefined) return known;
    const has = this.#store.getSync(key) !== undefined;
    this.remember(key, has);
    return has;
  }

  /** Takes note of what was just written. */
  remember(key: string, has: boolean): void {
    this.#remembered.set(key, has);
    this.#remembered.forgetOldest(maxRemembered);
  }

  async read(key: string): Promise<Kill | undefined> {
    const [target, text] = [targetIn(key), await this.#store.get(key)];
    return target === undefined || text === undefined ? undefined : readKill(target, text);
  }

  /** The first `limit` kills whose keys begin with `prefix`, behind the one that goes on with `after`, by their keys. */
  async list(prefix: string, limit: number, after?: string): Promise<Map<string, Kill>> {
    const kills = new Map<string, Kill>();
    for await (const [key, text] of this.#store.iterator({ ...killRange(prefix, after), limit })) {
      const target = targetIn(key);
      if (target !== undefined) kills.set(key, readKill(target, text));
    }
    return kills;
  }
}
