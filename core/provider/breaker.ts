import type { BreakerConfig } from "../config/gateway-config.ts";

export type BreakerState = "closed" | "open" | "half_open";

/** What became of one request that was let through. Results of requests from before the last opening do not count. */
export interface Admission {
  /** The answer began: the provider is back, if it was away, but one failure is enough for its next rest. */
  began(): void;
  succeeded(): void;
  failed(): void;
  /** It is over. Where nothing else was said of it, nothing was learnt. */
  ended(): void;
}

/**
 * Leaves a provider alone that fails several times in a row: for a while nothing is let through, then one request at a
 * time, until one succeeds.
 */
export class CircuitBreaker {
  readonly #config: BreakerConfig;
  readonly #elapsedMs: () => number;
  readonly #onChange: (state: BreakerState) => void;
  #failures = 0;
  #openedAtMs: number | undefined;
  #openings = 0;
  #probing = false;

  /** `onChange` hears of `open`, and of `closed` after that. */
  constructor(config: BreakerConfig, elapsedMs: () => number, onChange: (state: BreakerState) => void) {
    this.#config = config;
    this.#elapsedMs = elapsedMs;
    this.#onChange = onChange;
  }

  get state(): BreakerState {
    if (this.#openedAtMs === undefined) return "closed";
    return this.remainingMs > 0 ? "open" : "half_open";
  }

  /** In a row. */
  get failures(): number {
    return this.#failures;
  }

  /** Until a request may be let through again; 0 where it may. */
  get remainingMs(): number {
    if (this.#openedAtMs === undefined) return 0;
    return Math.max(0, this.#openedAtMs + this.#config.restMs - this.#elapsedMs());
  }

  /** Whether a request would be let through now. */
  get admits(): boolean {
    return this.state === "closed" || (this.state === "half_open" && !this.#probing);
  }

  /** Lets one request through, or undefined where none may pass. */
  admit(): Admission | undefined {
    if (!this.admits) return undefined;
    const opening = this.#openings;
    const counts = (step: () => void) => (): void => {
      if (opening === this.#openings) step();
    };
    this.#probing = this.state === "half_open";
    return {
      began: counts(() => this.#began()),
      succeeded: counts(() => this.#succeeded()),
      failed: counts(() => this.#failed()),
      ended: counts(() => {
        this.#probing = false;
      }),
    };
  }

  #began(): void {
    if (this.#openedAtMs === undefined) return;
    this.#failures = this.#config.failures - 1;
    this.#openedAtMs = undefined;
    this.#probing = false;
    this.#onChange("closed");
  }

  #succeeded(): void {
    this.#began();
    this.#failures = 0;
  }

  #failed(): void {
    this.#failures++;
    this.#probing = false;
    if (this.#openedAtMs === undefined && this.#failures < this.#config.failures) return;
    this.#openedAtMs = this.#elapsedMs();
    this.#openings++;
    this.#onChange("open");
  }
}
