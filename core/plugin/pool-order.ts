import type { BreachReason } from "./breach.ts";
import type { CompiledModule } from "./plugin-machine.ts";

/** The order to a pool thread to run one call. */
export interface PoolOrder {
  readonly compiled: CompiledModule;
  /** The id of the compiled module, for reusing its machine. */
  readonly machine: number;
  readonly fuel: number;
  /** Transferred: the sender can no longer read it. */
  readonly input: Uint8Array;
}

/** The thread's reply to an order. */
export type PoolReply = {
  readonly fuelUsed: number;
} & ({ readonly answer: Uint8Array } | { readonly reason: BreachReason; readonly detail: string });
