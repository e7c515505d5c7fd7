import { GatewayError } from "../../action/error.ts";
import { isInScope, PlaceShare, type SharePercents, type ShareScope, shareError } from "../../action/place-share.ts";
import type { Principal } from "../../action/principal.ts";

const sweepMs = 30_000;
/** Idle time after which a session makes room for another one. A client that crashed does not come back to end it. */
const spareMs = 60_000;

/** An entry of the table. */
export interface Occupant {
  readonly id: string;
  readonly principal: Principal;
  /** In use, however long ago its client last sent something. */
  readonly busy: boolean;
  /** Ends the streams that would keep the gateway from stopping. */
  endStream(): void;
  /** Resolves when everything of it is closed; called once. */
  close(): Promise<void>;
}

interface SessionTableOptions {
  readonly maxSessions: number;
  readonly shares: SharePercents;
  readonly idleMs: number;
  /** Monotonic, milliseconds. */
  readonly elapsedMs: () => number;
  /** Makes unguessable ids: with the same key, the holder of an id acts in that session. */
  readonly newId: () => string;
  readonly onCount: (count: number) => void;
}

interface Entry {
  readonly occupant: Occupant;
  lastUsedMs: number;
}

/**
 * The open MCP sessions and SSE connections: bounded in number, in all and for each key and tenant, swept when idle, each
 * visible to its owner only.
 */
export class SessionTable {
  readonly #options: SessionTableOptions;
  readonly #entries = new Map<string, Entry>();
  readonly #closing = new Set<Promise<void>>();
  readonly #places: PlaceShare;
  #stopping = false;
  readonly #sweeper: NodeJS.Timeout;

  constructor(options: SessionTableOptions) {
    this.#options = options;
    this.#places = new PlaceShare(options.maxSessions, options.shares);
    this.#sweeper = setInterval(() => this.#sweep(), sweepMs).unref();
  }

  /**
   * Adds what `open` returns for `principal`, under the id it gets. Its place is taken until it has closed. Where the share
   * of its key or tenant, or the table, is full, the session there that was idle longest is ended first, if that is over a
   * minute. Rejects with SESSION_LIMIT or STOPPING without calling `open`, and as `open` does.
   */
  async add<T extends Occupant>(principal: Principal, open: (id: string) => Promise<T>): Promise<T> {
    const { newId, elapsedMs } = this.#options;
    await this.#takePlace(principal);
    try {
      const occupant = await open(newId());
      this.#entries.set(occupant.id, { occupant, lastUsedMs: elapsedMs() });
      this.#options.onCount(this.#entries.size);
      return occupant;
    } catch (error) {
      this.#places.release(principal);
      throw error;
    }
  }

  /**
   * Returns the entry of this kind and id, if it is this principal's. Throws the same SESSION_UNKNOWN for entries of others,
   * of another kind, and for those that ended or never existed.
   */
  find<T extends Occupant>(kind: abstract new (...args: never[]) => T, id: string, principal: Principal): T {
    const entry = this.#entries.get(id);
    if (!(entry?.occupant instanceof kind) || entry.occupant.principal.id !== principal.id) {
      throw new GatewayError("SESSION_UNKNOWN", "open a new one");
    }
    entry.lastUsedMs = this.#options.elapsedMs();
    return entry.occupant;
  }

  /** Removes and closes an entry. Does nothing for one that was ended before. */
  async end(occupant: Occupant): Promise<void> {
    if (!this.#entries.delete(occupant.id)) return;
    this.#options.onCount(this.#entries.size);
    const closing = occupant.close().finally(() => {
      this.#places.release(occupant.principal);
      this.#closing.delete(closing);
    });
    this.#closing.add(closing);
    await closing;
  }

  /** Ends the entries of principals that are no longer `known`. */
  async endRevoked(known: (principal: Principal) => boolean): Promise<void> {
    const revoked = this.#occupants().filter(({ principal }) => !known(principal));
    await Promise.all(revoked.map((occupant) => this.end(occupant)));
  }

  /** Ends the streams that would never end by themselves, and accepts no further entry. */
  endStreams(): void {
    this.#stopping = true;
    for (const occupant of this.#occupants()) occupant.endStream();
  }

  async closeAll(): Promise<void> {
    clearInterval(this.#sweeper);
    await Promise.all([...this.#occupants().map((occupant) => this.end(occupant)), ...this.#closing]);
  }

  async #takePlace(principal: Principal): Promise<void> {
    for (;;) {
      if (this.#stopping) throw new GatewayError("STOPPING");
      const scope = this.#places.usedUp(principal);
      if (scope === undefined) return this.#places.take(principal);
      const spare = this.#findLeastUsed(scope, principal);
      const leftMs = (spare?.lastUsedMs ?? this.#options.elapsedMs()) + spareMs - this.#options.elapsedMs();
      if (spare === undefined || leftMs > 0) {
        const limit = this.#places.limits[scope];
        const retryS = Math.ceil(leftMs / 1_000);
        throw shareError("SESSION_LIMIT", "open sessions", { scope, limit, retryS }, "end one, or ");
      }
      await this.end(spare.occupant);
    }
  }

  #findLeastUsed(scope: ShareScope, principal: Principal): Entry | undefined {
    let leastUsed: Entry | undefined;
    for (const entry of this.#entries.values()) {
      if (entry.occupant.busy || !isInScope(scope, principal, entry.occupant.principal)) continue;
      if (leastUsed === undefined || entry.lastUsedMs < leastUsed.lastUsedMs) leastUsed = entry;
    }
    return leastUsed;
  }

  #occupants(): readonly Occupant[] {
    return [...this.#entries.values()].map(({ occupant }) => occupant);
  }

  #sweep(): void {
    const oldest = this.#options.elapsedMs() - this.#options.idleMs;
    for (const { occupant, lastUsedMs } of this.#entries.values()) {
      if (lastUsedMs < oldest && !occupant.busy) void this.end(occupant);
    }
  }
}
