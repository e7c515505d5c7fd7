/** How many breaches in a row make a plugin rest, and for how long. */
const mostInARow = 5;
export const restMs = 30_000;

interface Count {
  inARow: number;
  restsUntilMs: number;
}

/**
 * Stops asking a plugin that keeps failing. While it rests the answer is `block`: nothing passes unjudged.
 * Counted by tenant, so that one tenant's hostile arguments cannot make it rest for the others.
 */
export class Breaker {
  readonly #elapsedMs: () => number;
  readonly #counts = new Map<string, Count>();

  constructor(elapsedMs: () => number) {
    this.#elapsedMs = elapsedMs;
  }

  isResting(tenant: string): boolean {
    const count = this.#counts.get(tenant);
    return count !== undefined && this.#elapsedMs() < count.restsUntilMs;
  }

  /** Begins to count anew. An answer to a question from before the rest does not end it. */
  answered(tenant: string): void {
    if (!this.isResting(tenant)) this.#counts.delete(tenant);
  }

  /** Counts a breach; true where the plugin rests from now on. One breach after a rest is enough for the next. */
  failed(tenant: string): boolean {
    if (this.isResting(tenant)) return false;
    const inARow = (this.#counts.get(tenant)?.inARow ?? 0) + 1;
    const rests = inARow >= mostInARow;
    this.#counts.set(tenant, { inARow, restsUntilMs: rests ? this.#elapsedMs() + restMs : 0 });
    return rests;
  }
}
