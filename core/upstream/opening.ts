import { GatewayError } from "../action/error.ts";
import type { Clock } from "../action/id.ts";

/** The time from the beginning of a start in which requests wait for it. Some agents give up a server after 10 s. */
const maxWaitMs = 8_000;
/** The longest time to advise before the next try. */
const maxRetryS = 5;

interface OpeningOptions<T> {
  readonly upstream: string;
  readonly startTimeoutMs: number;
  readonly clock: Clock;
  readonly open: () => Promise<T>;
}

/**
 * The opening of one connection, at most one at a time. Requests wait for it in its first 8 seconds; after that they are
 * refused while it goes on.
 */
export class Opening<T> {
  readonly #options: OpeningOptions<T>;
  #running: Promise<T> | undefined;
  #since = 0;
  #isMissed = false;

  constructor(options: OpeningOptions<T>) {
    this.#options = options;
  }

  /** Begins to open unless that is under way. Takes as long as it takes. */
  run(): Promise<T> {
    if (this.#running !== undefined) return this.#running;
    this.#since = this.#options.clock();
    this.#running = this.#options.open().finally(() => {
      this.#running = undefined;
    });
    return this.#running;
  }

  /** Begins to open unless that is under way. Rejects with UPSTREAM_STARTING where it takes longer than a request waits. */
  async wait(): Promise<T> {
    const { startTimeoutMs, clock } = this.#options;
    const running = this.run();
    try {
      // A start that may take no longer ends by itself, and its own fault says more.
      if (startTimeoutMs <= maxWaitMs) return await running;
      return await this.#within(running, this.#since + maxWaitMs - clock());
    } catch (error) {
      this.#isMissed = true;
      throw error;
    }
  }

  /** Returns whether a request had to do without the connection since this was last asked. */
  claimMissed(): boolean {
    const isMissed = this.#isMissed;
    this.#isMissed = false;
    return isMissed;
  }

  /** Resolves when nothing is being opened. */
  async settled(): Promise<void> {
    await this.#running?.catch(() => undefined); // its callers received the fault
  }

  async #within(opening: Promise<T>, waitMs: number): Promise<T> {
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise<never>((_, reject) => {
      timer = setTimeout(() => reject(this.#starting()), Math.max(0, waitMs));
    });
    try {
      return await Promise.race([opening, late]);
    } finally {
      clearTimeout(timer);
    }
  }

  #starting(): GatewayError {
    const { upstream, startTimeoutMs, clock } = this.#options;
    const elapsedMs = clock() - this.#since;
    const leftS = Math.ceil((startTimeoutMs - elapsedMs) / 1_000);
    const retryS = Math.min(maxRetryS, Math.max(1, leftS));
    const detail = `\`${upstream}\` has been starting for ${Math.round(elapsedMs / 1_000)} s; try again in ${retryS} s`;
    return new GatewayError("UPSTREAM_STARTING", detail, { data: { retry_after_s: retryS } });
  }
}
