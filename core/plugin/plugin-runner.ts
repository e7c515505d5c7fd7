import { encodeInput, type PluginInput } from "./abi.ts";
import { PluginBreach } from "./breach.ts";
import { type CompiledModule, PluginMachine } from "./plugin-machine.ts";
import type { PluginPool, PoolReply } from "./plugin-pool.ts";

export interface PluginRunnerOptions {
  readonly plugin: string;
  readonly compiled: CompiledModule;
  /** Runs calls on the main thread; undefined where the pool runs them all. */
  readonly machine: PluginMachine | undefined;
  /** The fuel limit of a call. */
  readonly fuel: number;
  /** The fuel that the main thread may spend on a call before the pool runs it. */
  readonly sliceFuel: number;
  readonly pool: Pick<PluginPool, "call" | "maxWaitMs">;
  /** Monotonic. */
  readonly elapsedMs: () => number;
  /** Called with the share of its fuel that a call used, from 0 to 1. */
  readonly onSpent: (share: number) => void;
}

/** Above this much memory, resetting an instance that wrote to all of it takes too long for the main thread. */
const maxMemoryHere = 1_835_008;
/** To read more bytes than this takes longer than a slice. */
export const maxInputHere = 262_144;
let lastKey = 0;

/**
 * Makes the machine of the main thread; undefined for a module that runs in the pool alone. Rejects with PluginBreach
 * where the module cannot be instantiated.
 */
export async function openHere(compiled: CompiledModule): Promise<PluginMachine | undefined> {
  return compiled.snapshot.memoryBytes > maxMemoryHere ? undefined : PluginMachine.open(compiled);
}

/**
 * Runs calls of one plugin: on this thread, up to a slice of fuel; where that runs out, again from the start in the
 * pool with the whole fuel. The result does not depend on where the call runs.
 */
export class PluginRunner {
  readonly #options: PluginRunnerOptions;
  readonly #slices: Slices;
  readonly #key = ++lastKey;

  constructor(options: PluginRunnerOptions) {
    this.#options = options;
    this.#slices = new Slices(options.sliceFuel);
  }

  /**
   * Runs a call of a key and returns the plugin's output. Throws PluginBreach synchronously where the slice sufficed,
   * else rejects with it.
   */
  run(input: PluginInput, tenant: string, key: string): Uint8Array | Promise<Uint8Array> {
    const { fuel, elapsedMs, machine } = this.#options;
    if (machine === undefined || input.action.length > maxInputHere) return this.#runInPool(input, tenant, key);
    if (!machine.isReady) {
      // A machine that cannot be made again leaves all calls to the pool, which reports why.
      machine.prepare().catch(() => undefined);
      return this.#runInPool(input, tenant, key);
    }
    const slice = Math.min(fuel, this.#slices.of(tenant));
    const started = elapsedMs();
    try {
      const answer = machine.call(encodeInput(input), slice);
      this.#slices.answered(tenant);
      this.#reportFuel(machine.fuelUsed);
      return answer;
    } catch (error) {
      if (slice < fuel && error instanceof PluginBreach && error.reason === "fuel_exhausted") {
        this.#slices.usedUp(tenant, elapsedMs() - started);
        return this.#runInPool(input, tenant, key);
      }
      this.#reportFuel(machine.fuelUsed);
      throw error;
    }
  }

  async #runInPool(input: PluginInput, tenant: string, key: string): Promise<Uint8Array> {
    const { plugin, compiled, fuel, pool } = this.#options;
    const reply: PoolReply = await pool.call({ plugin, tenant, key, compiled, machine: this.#key, fuel, input });
    this.#reportFuel(reply.fuelUsed);
    if ("answer" in reply) return reply.answer;
    throw new PluginBreach(reply.reason, reply.detail);
  }

  #reportFuel(fuelUsed: number): void {
    this.#options.onSpent(Math.min(1, fuelUsed / this.#options.fuel));
  }
}

const smallest = 8;
/** The longest duration of a whole slice. */
const wholeMs = 1;
/** Bounds on shortening the slice, at once and in total, and the factor by which it grows again. */
const maxAtOnce = 8;
const maxInAll = 256;
const growth = 1.25;

/** The fuel of one tenant: `whole`, as learned from its calls, divided while they use it up. */
interface Slice {
  whole: number;
  divisor: number;
}

/**
 * The fuel that the main thread may spend on a call: about a millisecond as measured, less where the plugin's code
 * turns out more expensive. A tenant whose calls exhaust it without an answer gets less, down to an eighth, and more
 * again with each call answered within it. Each tenant has its own: nobody's calls leave the thread because of others'.
 * Does not affect verdicts.
 */
export class Slices {
  readonly #reckoned: number;
  readonly #slices = new Map<string, Slice>();

  constructor(reckoned: number) {
    this.#reckoned = reckoned;
  }

  of(tenant: string): number {
    const slice = this.#slices.get(tenant);
    return slice === undefined ? this.#reckoned : Math.ceil(slice.whole / slice.divisor);
  }

  answered(tenant: string): void {
    const slice = this.#slices.get(tenant);
    if (slice !== undefined && slice.divisor > 1) slice.divisor /= 2;
  }

  /** `tookMs` is the duration of the failed attempt. */
  usedUp(tenant: string, tookMs: number): void {
    const { whole, divisor } = this.#slices.get(tenant) ?? { whole: this.#reckoned, divisor: 1 };
    const learned = this.#learn(whole, (tookMs * divisor) / wholeMs);
    this.#slices.set(tenant, { whole: learned, divisor: Math.min(smallest, divisor * 2) });
  }

  /** Adjusts a whole slice. Only exhausted slices are measured; short calls cannot lengthen it again. */
  #learn(whole: number, share: number): number {
    if (share > 1) return Math.max(this.#reckoned / maxInAll, whole / Math.min(maxAtOnce, share));
    return share < 1 / 2 ? Math.min(this.#reckoned, whole * growth) : whole;
  }
}
