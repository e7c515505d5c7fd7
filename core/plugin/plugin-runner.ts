import { PluginBreach } from "./breach.ts";
import type { CompiledModule } from "./compiled-module.ts";
import { PluginMachine } from "./plugin-machine.ts";
import type { PluginPool } from "./plugin-pool.ts";
import type { PoolReply } from "./pool-order.ts";

export interface PluginRunnerOptions {
  readonly plugin: string;
  readonly compiled: CompiledModule;
  /** Units one call may spend. */
  readonly fuel: number;
  /** Units the thread that serves may spend on one call before the pool has it. */
  readonly sliceFuel: number;
  readonly pool: Pick<PluginPool, "call">;
  /** Monotonic. */
  readonly elapsedMs: () => number;
  /** Hears of the share of its fuel that a call took, from 0 to 1. */
  readonly onSpent: (share: number) => void;
}

/** Beyond this much memory, putting it back after a call takes too long for the thread that serves. */
const maxMemoryHere = 1_048_576;
let lastKey = 0;

/**
 * Runs calls of one plugin: here, at once, as far as a slice of fuel goes; from their beginning in the pool, with all of
 * their fuel, where the slice was not enough. The answer is the same wherever it was found.
 */
export class PluginRunner {
  readonly #options: PluginRunnerOptions;
  readonly #slices: Slices;
  readonly #machine: PluginMachine | undefined;
  readonly #key = ++lastKey;

  /** Throws PluginBreach where the module cannot be instantiated. */
  constructor(options: PluginRunnerOptions) {
    this.#options = options;
    this.#slices = new Slices(options.sliceFuel);
    if (options.compiled.snapshot.memoryBytes <= maxMemoryHere) this.#machine = new PluginMachine(options.compiled);
  }

  /** What the plugin answered. Fails with PluginBreach: at once where the slice was enough, else by rejecting. */
  run(input: Uint8Array, tenant: string): Uint8Array | Promise<Uint8Array> {
    if (this.#machine === undefined) return this.#runInPool(input, tenant);
    const { fuel, elapsedMs } = this.#options;
    const slice = Math.min(fuel, this.#slices.of(tenant));
    const started = elapsedMs();
    try {
      const answer = this.#machine.call(input, slice);
      this.#slices.answered(tenant);
      this.#tellSpent(this.#machine.fuelUsed);
      return answer;
    } catch (error) {
      if (slice < fuel && error instanceof PluginBreach && error.reason === "fuel_exhausted") {
        this.#slices.usedUp(tenant, elapsedMs() - started);
        return this.#runInPool(input, tenant);
      }
      this.#tellSpent(this.#machine.fuelUsed);
      throw error;
    }
  }

  async #runInPool(input: Uint8Array, tenant: string): Promise<Uint8Array> {
    const { plugin, compiled, fuel, pool } = this.#options;
    const reply: PoolReply = await pool.call({ plugin, tenant, compiled, machine: this.#key, fuel, input });
    this.#tellSpent(reply.fuelUsed);
    if ("answer" in reply) return reply.answer;
    throw new PluginBreach(reply.reason, reply.detail);
  }

  #tellSpent(fuelUsed: number): void {
    this.#options.onSpent(Math.min(1, fuelUsed / this.#options.fuel));
  }
}

const smallest = 8;
/** How long a whole slice should take at most. */
const wholeMs = 1;
/** How far one slice that took too long makes the next shorter, how far all of them can, and how they grow again. */
const maxAtOnce = 8;
const maxInAll = 256;
const growth = 1.25;

/**
 * How much of a call the thread that serves may try, in fuel: about a millisecond, as it was reckoned, and less where the
 * plugin's code turns out dearer than that. A tenant whose calls use it up in vain has less of it, down to an eighth, and
 * more again with each call that was answered within. Where a call runs does not change its verdict.
 */
export class Slices {
  readonly #reckoned: number;
  readonly #divisors = new Map<string, number>();
  #whole: number;

  constructor(reckoned: number) {
    this.#reckoned = reckoned;
    this.#whole = reckoned;
  }

  of(tenant: string): number {
    return Math.ceil(this.#whole / (this.#divisors.get(tenant) ?? 1));
  }

  answered(tenant: string): void {
    const divisor = this.#divisors.get(tenant);
    if (divisor === undefined) return;
    if (divisor > 2) this.#divisors.set(tenant, divisor / 2);
    else this.#divisors.delete(tenant);
  }

  /** `tookMs` is how long it was tried. */
  usedUp(tenant: string, tookMs: number): void {
    const divisor = this.#divisors.get(tenant) ?? 1;
    this.#divisors.set(tenant, Math.min(smallest, divisor * 2));
    this.#learn((tookMs * divisor) / wholeMs);
  }

  /** Only slices that were used up tell: what answers within cannot make them longer again. */
  #learn(share: number): void {
    if (share > 1) {
      this.#whole = Math.max(this.#reckoned / maxInAll, this.#whole / Math.min(maxAtOnce, share));
    } else if (share < 1 / 2) {
      this.#whole = Math.min(this.#reckoned, this.#whole * growth);
    }
  }
}
