import type { BatchOperation, CommitHook } from "../action/commit-hook.ts";
import { GatewayError } from "../action/error.ts";
import type { JsonObject } from "../action/json.ts";
import { RecentMap } from "../action/recent-map.ts";
import type { Store } from "../store/open.ts";
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
  targetOfKey,
} from "./kill.ts";

/** Records an event and its operations in one atomic batch. */
export interface SessionLog {
  /** A function `operations` is called in the turn in which the event gets its place in the chain. */
  recordEvent(
    tenant: string,
    kind: "session",
    detail: JsonObject,
    operations: readonly BatchOperation[] | (() => readonly BatchOperation[]),
  ): Promise<void>;
}

export interface KillStoreOptions {
  /** Read directly, written through the log alone. */
  readonly store: Store;
  readonly log: SessionLog;
  /** Called when a kill comes into force. Returns what commits with it, if anything. Must not throw. */
  readonly onKill: (tenant: string, target: KillTarget) => CommitHook | undefined;
  /** Called when a release begins. Returns what commits with it, if anything. */
  readonly onRelease: (tenant: string, target: KillTarget) => CommitHook | undefined;
  /** Delay before a kill that could not be recorded is recorded again; 1 s where absent. */
  readonly retryMs?: number;
}

export interface KillPage {
  readonly items: readonly Kill[];
  /** The cursor of the next page; null after the last. */
  readonly next: string | null;
}

export interface KillPageRequest {
  readonly limit: number;
  /** The `next` of an earlier page. */
  readonly cursor?: string;
  /** Kills of this scope alone; each scope has cursors of its own. */
  readonly scope?: KillScope;
}

/** A change that is not durable yet. Its target is stopped whatever the store says. */
interface PendingChange {
  readonly tenant: string;
  readonly kill: Kill;
  readonly isReleasing: boolean;
  /** Commits with a kill. */
  readonly hook?: CommitHook | undefined;
  /** Settles with the latest attempt to record the change. */
  attempt: Promise<void>;
}

const maxPending = 10_000;
const defaultRetryMs = 1_000;

/**
 * The kills of each tenant, in force, on record and in the store.
 *
 * INVARIANT: a kill is in force before it is recorded, a release only once it is durable.
 */
export class KillStore {
  readonly #options: KillStoreOptions;
  readonly #index: KillIndex;
  readonly #pending = new Map<string, PendingChange>();
  /** True where a tenant had a kill at the start or since, for the tenants that were surveyed. Changed by this store alone. */
  readonly everKilled = new Map<string, boolean>();
  #closed = false;

  constructor(options: KillStoreOptions) {
    this.#options = options;
    this.#index = new KillIndex(options.store);
  }

  /** Determines whether a tenant has any kill, so that a tenant without one needs no look-up afterwards. */
  async survey(tenant: string): Promise<void> {
    const kills = await this.#index.list(killPrefix(tenant), 1);
    // A kill that came while the store was read has been noted already.
    if (!this.everKilled.has(tenant)) this.everKilled.set(tenant, kills.size > 0);
  }

  /** Throws where the store cannot be read. */
  has(tenant: string, target: KillTarget): boolean {
    const key = killKey(tenant, target);
    return this.#pending.has(key) || this.#index.has(key);
  }

  /** Returns whether the last change of a target is not durable yet. */
  isPending(tenant: string, target: KillTarget): boolean {
    return this.#pending.has(killKey(tenant, target));
  }

  async find(tenant: string, target: KillTarget): Promise<Kill | undefined> {
    const key = killKey(tenant, target);
    return this.#pending.get(key)?.kill ?? (await this.#index.read(key));
  }

  /**
   * Like `enforce`, but throws SESSION_STATE for a target that is stopped already, and EVIDENCE_UNAVAILABLE where too many
   * kills wait for the disk.
   */
  kill(tenant: string, kill: Kill): Promise<void> {
    const key = killKey(tenant, kill);
    const before = this.#pending.get(key);
    if (before === undefined ? this.#isStored(key) : !before.isReleasing) throw stateConflict("killed", alreadyStopped);
    if (this.#pending.size >= maxPending) {
      throw new GatewayError("EVIDENCE_UNAVAILABLE", `expected at most ${maxPending} kills to wait to be recorded`);
    }
    return this.enforce(tenant, kill);
  }

  /**
   * Puts a kill in force at once, and records it after the pending change of its target, retrying until that succeeds.
   * The promise settles with the first attempt.
   */
  enforce(tenant: string, kill: Kill): Promise<void> {
    const key = killKey(tenant, kill);
    const after = this.#pending.get(key)?.attempt ?? Promise.resolve();
    this.everKilled.set(tenant, true);
    const hook = this.#options.onKill(tenant, kill);
    const change: PendingChange = { tenant, kill, isReleasing: false, hook, attempt: after };
    this.#pending.set(key, change);
    change.attempt = after.catch(() => undefined).then(() => this.#record(key, change));
    change.attempt.catch(() => this.#recordLater(key, change));
    return change.attempt;
  }

  /**
   * Releases a target once that is durable. Rejects with EVIDENCE_UNAVAILABLE where it cannot be recorded; the target stays
   * stopped then. Rejects with SESSION_STATE for a target that is not stopped, or whose last change is not durable yet.
   */
  async release(tenant: string, target: KillTarget, by: string, reason: string): Promise<void> {
    const key = killKey(tenant, target);
    const kill = await this.#index.read(key);
    if (this.#pending.has(key)) throw stateConflict("killed", notRecordedYet);
    if (kill === undefined || !this.#index.has(key)) throw stateConflict("active", notStopped);
    const detail = releasedDetail(target, by, reason);
    const hook = this.#options.onRelease(tenant, target);
    const attempt = this.#options.log.recordEvent(tenant, "session", detail, () => [
      { type: "del", key },
      ...(hook?.operations() ?? []),
    ]);
    const change: PendingChange = { tenant, kill, isReleasing: true, attempt };
    this.#pending.set(key, change);
    try {
      await attempt;
    } catch (error) {
      // The release may be on disk nonetheless. The kill is recorded again, so that the next start restores it.
      if (this.#pending.get(key) === change) this.enforce(tenant, kill).catch(() => undefined);
      throw error;
    } finally {
      hook?.end();
    }
    this.#settle(key, change, false);
  }

  /** Lists the kills of a tenant in the order of their keys. */
  async list(tenant: string, { limit, cursor, scope }: KillPageRequest): Promise<KillPage> {
    const prefix = killPrefix(tenant, scope);
    const kills = await this.#index.list(prefix, limit + 1, cursor);
    const { gt, lt } = killRange(prefix, cursor);
    for (const [key, { kill }] of this.#pending) if (key > gt && key < lt) kills.set(key, kill);
    const keys = [...kills.keys()].sort();
    const page = keys.slice(0, limit);
    const next = keys.length > limit ? (page.at(-1)?.slice(prefix.length) ?? null) : null;
    return { items: page.map((key) => kills.get(key) as Kill), next };
  }

  /** Stops recording. Kills in force stay in force. */
  close(): void {
    this.#closed = true;
  }

  async #record(key: string, change: PendingChange): Promise<void> {
    const entry: BatchOperation = { type: "put", key, value: JSON.stringify(change.kill) };
    await this.#options.log.recordEvent(change.tenant, "session", killedDetail(change.kill), () => [
      entry,
      ...(change.hook?.operations() ?? []),
    ]);
    change.hook?.end();
    this.#settle(key, change, true);
  }

  #recordLater(key: string, change: PendingChange): void {
    const attempt = (): void => {
      if (this.#closed || this.#pending.get(key) !== change) return;
      change.attempt = this.#record(key, change);
      change.attempt.catch(() => this.#recordLater(key, change));
    };
    setTimeout(attempt, this.#options.retryMs ?? defaultRetryMs).unref();
  }

  /** Drops a change that is durable now, unless a later one has replaced it. */
  #settle(key: string, change: PendingChange, isKilled: boolean): void {
    if (this.#pending.get(key) !== change) return;
    this.#index.set(key, isKilled);
    this.#pending.delete(key);
  }

  /** A store that cannot be read must not prevent a kill. */
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

export function stateConflict(state: "active" | "killed", detail: string): GatewayError {
  return new GatewayError("SESSION_STATE", `\`${state}\`: ${detail}`, { data: { state } });
}

const maxCached = 10_000;

/** Caches which keys have an entry in the store; keys that were not used recently are read again. */
class KillIndex {
  readonly #store: Store;
  readonly #cached = new RecentMap<boolean>();

  constructor(store: Store) {
    this.#store = store;
  }

  /** Throws where the store cannot be read: nothing may be dispatched then. */
  has(key: string): boolean {
    const cached = this.#cached.get(key);
    if (cached !== undefined) return cached;
    const has = this.#store.getSync(key) !== undefined;
    this.set(key, has);
    return has;
  }

  /** Notes whether a key has an entry after a write. */
  set(key: string, has: boolean): void {
    this.#cached.set(key, has);
    this.#cached.forgetOldest(maxCached);
  }

  async read(key: string): Promise<Kill | undefined> {
    const [target, text] = [targetOfKey(key), await this.#store.get(key)];
    return target === undefined || text === undefined ? undefined : readKill(target, text);
  }

  /** Returns the first `limit` kills with a key prefix, after the key that ends with `after`, by their keys. */
  async list(prefix: string, limit: number, after?: string): Promise<Map<string, Kill>> {
    const kills = new Map<string, Kill>();
    for await (const [key, text] of this.#store.iterator({ ...killRange(prefix, after), limit })) {
      const target = targetOfKey(key);
      if (target !== undefined) kills.set(key, readKill(target, text));
    }
    return kills;
  }
}
