import type { LeaseClaim, ReplicaDatabase } from "./database.ts";

interface LeaseOptions {
  readonly database: Pick<ReplicaDatabase, "renew" | "release">;
  readonly claim: LeaseClaim;
  readonly leaseMs: number;
  /** Milliseconds of a clock that only grows, also while the process is stopped. */
  readonly elapsedMs: () => number;
  /** Called once, when another replica has the lease. */
  readonly onLost: () => void;
}

/**
 * An owner's claim on the store, renewed three times in its length. The database decides who owns: where it cannot be asked, the
 * owner stops writing at the end of its lease by its own clock, and goes on if nobody took the lease meanwhile.
 */
export class Lease {
  readonly claim: LeaseClaim;
  readonly #options: LeaseOptions;
  readonly #timer: NodeJS.Timeout;
  #untilMs: number;
  #isLost = false;
  #renewing: Promise<void> | null = null;

  /** `askedMs`: when the claim was asked for. */
  constructor(options: LeaseOptions, askedMs: number) {
    this.claim = options.claim;
    this.#options = options;
    this.#untilMs = askedMs + options.leaseMs;
    this.#timer = setInterval(() => this.#renew(), options.leaseMs / 3);
  }

  /** False where another replica may own the store by now. */
  get isHeld(): boolean {
    return !this.#isLost && this.#options.elapsedMs() < this.#untilMs;
  }

  /** Renews no more, and gives the lease back where it is still held. */
  async release(): Promise<void> {
    clearInterval(this.#timer);
    await this.#renewing;
    if (this.#isLost) return;
    this.#isLost = true;
    // Where the database does not answer, the lease runs out.
    await this.#options.database.release(this.claim).catch(() => undefined);
  }

  #renew(): void {
    this.#renewing ??= this.#ask().finally(() => {
      this.#renewing = null;
    });
  }

  async #ask(): Promise<void> {
    const { database, leaseMs, elapsedMs, onLost } = this.#options;
    const askedMs = elapsedMs();
    // No answer is no loss: the next renewal asks again.
    const isOurs = await database.renew(this.claim, leaseMs).catch(() => undefined);
    if (isOurs === true) this.#untilMs = askedMs + leaseMs;
    if (isOurs !== false || this.#isLost) return;
    this.#isLost = true;
    clearInterval(this.#timer);
    onLost();
  }
}
