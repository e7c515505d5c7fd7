import type { BreachReason } from "./breach.ts";
import type { CompiledModule } from "./compiled-module.ts";

/** One call of a plugin, as a thread of the pool is told. */
export interface PoolOrder {
  readonly compiled: CompiledModule;
  /** The same for the same compiled module, and for no other. */
  readonly machine: number;
  readonly fuel: number;
  /** Given away: the thread that asks cannot read it any more. */
  readonly input: Uint8Array;
}

/** What the thread says to it. */
export type PoolReply = {
  readonly fuelUsed: number;
} & ({ readonly answer: Uint8Array } | { readonly reason: BreachReason; readonly detail: string });
