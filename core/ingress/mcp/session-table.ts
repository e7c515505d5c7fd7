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
  readonly #sweeper: NodeJS.Timeout;

  constructor(options: SessionTableOptions) {
    this.#options = options;
    this.#sweeper = setInterval(() => this.#sweep(), sweepMs).unref();
  }

  /** Throws SESSION_LIMIT where one more would be too many. Call before connecting anything for it. */
  checkRoom(): void {
    if (this.#sessions.size >= this.#options.mostSessions) {
      throw new GatewayError(
        "SESSION_LIMIT",
        `expected at most ${this.#options.mostSessions} open sessions; end one with DELETE /mcp`,
      );
    }
  }

  add(session: McpSession): void {
    this.#sessions.set(session.id, session);
    this.#options.onCount(this.#sessions.size);
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
