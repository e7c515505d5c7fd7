import { GatewayError } from "../kernel/error.ts";

/** Most requests end within seconds, so that there is room again. */
const wait = { data: { retry_after_s: 1 } } as const;

/**
 * What is served at once, by who asked for it. A holder is let in while more places are free than it holds: alone it has
 * at most half of them, and however many one asks for, others find room.
 */
export class ConcurrencyLimit {
  readonly #most: number;
  /** Only of those that hold any. */
  readonly #held = new Map<string, number>();
  #total = 0;

  constructor(most: number) {
    this.#most = most;
  }

  /**
   * Serves within the limit. Rejects, and serves nothing, with GATEWAY_BUSY where no place is free, and with RATE_LIMITED
   * where the holder has its share.
   */
  async run<Result>(holder: string, serve: () => Promise<Result>): Promise<Result> {
    this.#enter(holder);
    try {
      return await serve();
    } finally {
      this.#leave(holder);
    }
  }

  #enter(holder: string): void {
    const free = this.#most - this.#total;
    if (free === 0) throw new GatewayError("GATEWAY_BUSY", `expected at most ${this.#most} requests at once`, wait);
    const held = this.#held.get(holder) ?? 0;
    if (held >= free) {
      throw new GatewayError("RATE_LIMITED", `expected fewer requests at once than the ${held} of this key`, wait);
    }
    this.#held.set(holder, held + 1);
    this.#total++;
  }

  #leave(holder: string): void {
    const held = (this.#held.get(holder) ?? 0) - 1;
    if (held > 0) this.#held.set(holder, held);
    else this.#held.delete(holder);
    this.#total--;
  }
}
