import { GatewayError } from "../../action/error.ts";
import type { Clock } from "../../action/id.ts";
import type { Principal } from "../../action/principal.ts";

const sweepMs = 30_000;

/** What takes a place in the table. */
export interface Occupant {
  readonly id: string;
  readonly principal: Principal;
  /** Whether it is in use, however long ago its client last sent something. */
  readonly busy: boolean;
  /** Ends what would keep a gateway from stopping. */
  endStream(): void;
  /** Resolves when nothing is left of it; is called once. */
  close(): Promise<void>;
}

interface SessionTableOptions {
  readonly maxSessions: number;
  readonly idleMs: number;
  readonly clock: Clock;
  /** Makes ids that nobody can guess: whoever holds one speaks in that session, as far as the key is the same. */
  readonly newId: () => string;
  readonly onCount: (count: number) => void;
}

interface Entry {
  readonly occupant: Occupant;
  lastUsedMs: number;
}

/** The open MCP sessions and SSE connections: bounded in number, swept when idle, each seen by its owner only. */
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
   * Adds what `open` makes, under the id it is given. Its place is taken from now until it has closed. Rejects with
   * SESSION_LIMIT or STOPPING, and opens nothing, where there is none; else with what `open` rejects with.
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
   * The one of this kind and id, if it is this principal's. Throws SESSION_UNKNOWN alike for those of others, those of
   * another kind, those that have ended and those that never were.
   */
  find<T extends Occupant>(kind: abstract new (...args: never[]) => T, id: string, principal: Principal): T {
    const entry = this.#entries.get(id);
    if (!(entry?.occupant instanceof kind) || entry.occupant.principal.id !== principal.id) {
      throw new GatewayError("SESSION_UNKNOWN", "open a new one");
    }
    entry.lastUsedMs = this.#options.clock();
    return entry.occupant;
  }

  /** Takes it out, so that nobody finds it, then closes it. Does nothing for what was ended before. */
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

  /** Ends what belongs to everyone who is not `known` any more. */
  async endRevoked(known: (principal: Principal) => boolean): Promise<void> {
    const revoked = this.#occupants().filter(({ principal }) => !known(principal));
    await Promise.all(revoked.map((occupant) => this.end(occupant)));
  }

  /** Ends the streams that would never end by themselves, and takes nobody in any more. */
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
