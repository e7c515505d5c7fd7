import { openEngines } from "../compose/policies.ts";
import type { GatewayConfig } from "../config/gateway-config.ts";
import { EgressGuard } from "../egress/egress-guard.ts";
import { measureFuelRate } from "../plugin/fuel-rate.ts";
import { PluginPool } from "../plugin/plugin-pool.ts";
import { loadExtensions } from "../policy/extension-load.ts";
import { describeRefusal } from "../trust/refusal.ts";

const elapsedMs = (): number => performance.now();
const ignore = (): void => undefined;

/**
 * Loads the packs, plugins and engines of a configuration as the gateway does at its first start, with the tests of what was not
 * shipped with it, and drops them. `onUntrusted` is called for each that is loaded although nobody trusted signed it. Rejects as a
 * start would.
 */
export async function loadOnTrial(
  config: Pick<GatewayConfig, "policy" | "extensions" | "egress">,
  onUntrusted: (path: string, text: string) => void,
): Promise<void> {
  const { packs, plugins, engines, pluginWorkers, deadlineMs } = config.policy;
  const pool = new PluginPool({
    threads: pluginWorkers,
    deadlineMs,
    observer: { ran: ignore, threads: ignore, waiting: ignore },
  });
  try {
    await loadExtensions({
      packs,
      plugins,
      others: await openEngines(engines, {
        observer: { failed: ignore, circuit: ignore },
        egress: new EgressGuard(config.egress),
        deadlineMs,
      }),
      strict: config.extensions.strict,
      trustPolicy: config.extensions.trustPolicy,
      clock: Date.now,
      elapsedMs,
      pool,
      sliceFuel: measureFuelRate(elapsedMs),
      observer: { spent: ignore, breached: ignore, circuitOpened: ignore },
      lookUp: async () => undefined,
      onUntrusted: (path, refused) => onUntrusted(path, describeRefusal(refused)),
      onRefused: async () => undefined,
    });
  } finally {
    await pool.close();
  }
}
