import type { ActionEnvelope } from "../../core/action/envelope.ts";
import type { Policy, Verdict } from "../../core/action/policy.ts";
import { PluginPool } from "../../core/plugin/plugin-pool.ts";
import type { PluginPorts } from "../../core/policy/plugin-load.ts";

/** A pool that starts no thread before it is called. */
export function openPool(threads = 2, deadlineMs = 60_000): PluginPool {
  const ignore = (): void => undefined;
  return new PluginPool({ threads, deadlineMs, observer: { ran: ignore, threads: ignore, waiting: ignore } });
}

/** Every call is answered here and at once, however long it takes, where the plugin's memory is small. */
export const portsOfOneThread: PluginPorts = {
  elapsedMs: () => performance.now(),
  observer: { spent: () => undefined, breached: () => undefined, circuitOpened: () => undefined },
  sliceFuel: Number.MAX_SAFE_INTEGER,
  pool: openPool(1),
};

/** A policy that answers at once. */
export interface ImmediatePolicy extends Policy {
  evaluate(action: ActionEnvelope): Verdict;
  /** The same, also after a call for which the plugin's memory grew: then the pool answers. */
  settle(action: ActionEnvelope): Promise<Verdict>;
}

/** The same policy, for who knows that it answers at once. */
export function immediate(policy: Policy): ImmediatePolicy {
  const evaluate = (action: ActionEnvelope): Verdict => {
    const verdict = policy.evaluate(action);
    if (verdict instanceof Promise) throw new TypeError("expected an answer at once");
    return verdict;
  };
  return { ref: policy.ref, mode: policy.mode, evaluate, settle: async (action) => policy.evaluate(action) };
}
