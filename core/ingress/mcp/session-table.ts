import { GatewayError } from "../../kernel/error.ts";
import type { Clock } from "../../kernel/port.ts";
import type { Principal } from "../../kernel/principal.ts";
import type { McpSession } from "./session.ts";

const sweepMs = 30_000;

export interface SessionTableOptions {
  readonly mostSessions: number;
  readonly idleMs: number;
  readonly clock: Clock;
  readonly onCount: (count: number) => void;
}

/** The open MCP sessions: bounded in number, swept when idle, each seen by its owner only. */
export class SessionTable {
  readonly #options: SessionTableOptions;
  readonly #sessions = new Map<string, McpSession>();
  #opening = 0;
  readonly #sweeper: NodeJS.Timeout;

  constructor(options: SessionTableOptions) {
    this.#options = options;
    this.#sweeper = setInterval(() => this.#sweep(), sweepMs).unref();
  }

  /**
   * Adds the session that `open` makes, whose place is taken while it does. Rejects with SESSION_LIMIT, and opens
   * nothing, where one more would be too many; else with what `open` rejects with.
   */
  async add(open: () => Promise<McpSession>): Promise<McpSession> {
    const { mostSessions, onCount } = this.#options;
    if (this.#sessions.size + this.#opening >= mostSessions) {
      throw new GatewayError(
        "SESSION_LIMIT",
        `expected at most ${mostSessions} open sessions; end one with DELETE /mcp`,
      );
    }
    this.#opening++;
    try {
      const session = await open();
      this.#sessions.set(session.id, session);
      onCount(this.#sessions.size);
      return session;
    } finally {
      this.#opening--;
    }
  }

  /** The session of this id, if it is this principal's. Throws SESSION_UNKNOWN alike for foreign and absent ones. */
  find(id: string, principal: Principal): McpSession {
    const session = this.#sessions.get(id);
    if (session?.owner.principal.id !== principal.id)
      throw new GatewayError("SESSION_UNKNOWN", "send `initialize` to open one");
    session.lastUsedMs = this.#options.clock();
    return session;
  }

  async end(session: McpSession): Promise<void> {
    this.#sessions.delete(session.id);
    this.#options.onCount(this.#sessions.size);
    await session.close();
  }

  /** Ends the sessions of everyone who is not `known` any more. */
  async endRevoked(known: (principal: Principal) => boolean): Promise<void> {
    const revoked = [...this.#sessions.values()].filter(({ owner }) => !known(owner.principal));
    await Promise.all(revoked.map((session) => this.end(session)));
  }

  endStreams(): void {
    for (const session of this.#sessions.values()) session.endStream();
  }

  async closeAll(): Promise<void> {
    clearInterval(this.#sweeper);
    await Promise.all([...this.#sessions.values()].map((session) => this.end(session)));
  }

  #sweep(): void {
    const oldest = this.#options.clock() - this.#options.idleMs;
    for (const session of this.#sessions.values()) {
      if (session.lastUsedMs < oldest && !session.busy) void this.end(session);
    }
  }
}
