import { PluginBreach } from "./breach.ts";
import type { CompiledModule } from "./compiled-module.ts";
import { PluginMachine } from "./plugin-machine.ts";
import type { PluginPool } from "./plugin-pool.ts";
import type { PoolReply } from "./pool-order.ts";
import { Slices } from "./slices.ts";

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
const mostMemoryHere = 1_048_576;
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
    if (options.compiled.snapshot.memoryBytes <= mostMemoryHere) this.#machine = new PluginMachine(options.compiled);
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
