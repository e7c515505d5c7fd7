/** The limits of a circuit. */
export interface BreakerLimits {
  /** Failures in a row that open it. */
  readonly failures: number;
  /** Time for which it admits nothing. */
  readonly restMs: number;
}

export type BreakerState = "closed" | "open" | "half_open";

/** Records the result of one admitted request. Results of requests admitted before the circuit last opened are ignored. */
export interface Admission {
  /** The response began: closes an open circuit, which one more failure opens again. */
  began(): void;
  succeeded(): void;
  failed(): void;
  /** The request is over; without another result it does not count. */
  ended(): void;
}

/**
 * A circuit breaker: after several failures in a row it opens and admits no request for a while, then one at a time until
 * one succeeds.
 */
export class CircuitBreaker {
  readonly #limits: BreakerLimits;
  readonly #elapsedMs: () => number;
  readonly #onChange: (state: BreakerState) => void;
  #failures = 0;
  #openedAtMs: number | undefined;
  #openings = 0;
  #isProbing = false;

  /** `onChange` is called with `open`, and with `closed` after that. */
  constructor(limits: BreakerLimits, elapsedMs: () => number, onChange: (state: BreakerState) => void) {
    this.#limits = limits;
    this.#elapsedMs = elapsedMs;
    this.#onChange = onChange;
  }

  get state(): BreakerState {
    if (this.#openedAtMs === undefined) return "closed";
    return this.remainingMs > 0 ? "open" : "half_open";
  }

  /** Failures in a row. */
  get failures(): number {
    return this.#failures;
  }

  /** Milliseconds until a request is admitted again; 0 where one is. */
  get remainingMs(): number {
    if (this.#openedAtMs === undefined) return 0;
    return Math.max(0, this.#openedAtMs + this.#limits.restMs - this.#elapsedMs());
  }

  /** True if a request would be admitted now. */
  get isAdmitting(): boolean {
    return this.state === "closed" || (this.state === "half_open" && !this.#isProbing);
  }

  /** Admits one request; undefined while the circuit is open. */
  admit(): Admission | undefined {
    if (!this.isAdmitting) return undefined;
    const opening = this.#openings;
    const counts = (step: () => void) => (): void => {
      if (opening === this.#openings) step();
    };
    this.#isProbing = this.state === "half_open";
    return {
      began: counts(() => this.#began()),
      succeeded: counts(() => this.#succeeded()),
      failed: counts(() => this.#failed()),
      ended: counts(() => {
        this.#isProbing = false;
      }),
    };
  }

  #began(): void {
    if (this.#openedAtMs === undefined) return;
    this.#failures = this.#limits.failures - 1;
    this.#openedAtMs = undefined;
    this.#isProbing = false;
    this.#onChange("closed");
  }

  #succeeded(): void {
    this.#began();
    this.#failures = 0;
  }

  #failed(): void {
    this.#failures++;
    this.#isProbing = false;
    if (this.#openedAtMs === undefined && this.#failures < this.#limits.failures) return;
    this.#openedAtMs = this.#elapsedMs();
    this.#openings++;
    this.#onChange("open");
  }
}
