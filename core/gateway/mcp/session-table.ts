import { GatewayError } from "../../action/error.ts";
import type { Clock } from "../../action/id.ts";
import type { Principal } from "../../action/principal.ts";

const sweepMs = 30_000;

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
  readonly idleMs: number;
  readonly clock: Clock;
  /** Makes unguessable ids: with the same key, the holder of an id acts in that session. */
  readonly newId: () => string;
  readonly onCount: (count: number) => void;
}

interface Entry {
  readonly occupant: Occupant;
  lastUsedMs: number;
}

/** The open MCP sessions and SSE connections: bounded in number, swept when idle, each visible to its owner only. */
export class SessionTable {
  readonly #options: SessionTableOptions;
  readonly #entries = new Map<string, Entry>();
  readonly #closing = new Set<Promise<void>>();
  #placesTaken = 0;
  #stopping = false;
  readonly #sweeper: NodeJS.Timeout;

  constructor(options: SessionTableOptions) {
    this.#options = options;
    this.#sweeper = setInterval(() => this.#sweep(), sweepMs).unref();
  }

  /**
   * Adds what `open` returns, under the id it gets. Its place is taken until it has closed. Rejects with SESSION_LIMIT or
   * STOPPING without calling `open`, and as `open` does.
   */
  async add<T extends Occupant>(open: (id: string) => Promise<T>): Promise<T> {
    const { maxSessions, newId, clock } = this.#options;
    if (this.#stopping) throw new GatewayError("STOPPING");
    if (this.#placesTaken >= maxSessions) {
      throw new GatewayError("SESSION_LIMIT", `expected at most ${maxSessions} open sessions; end one first`);
    }
    this.#placesTaken++;
    try {
      const occupant = await open(newId());
      this.#entries.set(occupant.id, { occupant, lastUsedMs: clock() });
      this.#options.onCount(this.#entries.size);
      return occupant;
    } catch (error) {
      this.#placesTaken--;
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
    entry.lastUsedMs = this.#options.clock();
    return entry.occupant;
  }

  /** Removes and closes an entry. Does nothing for one that was ended before. */
  async end(occupant: Occupant): Promise<void> {
    if (!this.#entries.delete(occupant.id)) return;
    this.#options.onCount(this.#entries.size);
    const closing = occupant.close().finally(() => {
      this.#placesTaken--;
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

  #occupants(): readonly Occupant[] {
    return [...this.#entries.values()].map(({ occupant }) => occupant);
  }

  #sweep(): void {
    const oldest = this.#options.clock() - this.#options.idleMs;
    for (const { occupant, lastUsedMs } of this.#entries.values()) {
      if (lastUsedMs < oldest && !occupant.busy) void this.end(occupant);
    }
  }
}
