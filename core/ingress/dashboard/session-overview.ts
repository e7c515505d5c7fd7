import type { SessionDirectory, SessionView } from "../../session/session-directory.ts";

/** An answer under way, or one that is good for others until `until` (monotonic, milliseconds). */
interface Shared {
  readonly sessions: Promise<readonly SessionView[]>;
  until: number;
}

const most = 20;
/** An answer, or a failure, is shared for so many times as long as it took: looking takes at most a tenth of the time. */
const restFactor = 9;

/**
 * The sessions of a tenant with the highest risk. To find them all sessions are read, 2 µs each: however many pages are
 * open, one of them looks for all, and no more often than the number of sessions allows.
 */
export class SessionOverview {
  readonly #directory: Pick<SessionDirectory, "list">;
  /** Monotonic, milliseconds. */
  readonly #elapsedMs: () => number;
  /** By tenant. */
  readonly #shared = new Map<string, Shared>();

  constructor(directory: Pick<SessionDirectory, "list">, elapsedMs: () => number = () => performance.now()) {
    this.#directory = directory;
    this.#elapsedMs = elapsedMs;
  }

  async read(tenant: string): Promise<readonly SessionView[]> {
    const known = this.#shared.get(tenant);
    if (known !== undefined && this.#elapsedMs() < known.until) return known.sessions;
    const began = this.#elapsedMs();
    const shared: Shared = { sessions: this.#look(tenant), until: Number.POSITIVE_INFINITY };
    this.#shared.set(tenant, shared);
    try {
      return await shared.sessions;
    } finally {
      const ended = this.#elapsedMs();
      shared.until = ended + restFactor * (ended - began);
    }
  }

  async #look(tenant: string): Promise<readonly SessionView[]> {
    return (await this.#directory.list(tenant, "risk", most)).items;
  }
}
