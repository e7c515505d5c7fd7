import type { GatewayConfig } from "../../config/gateway-config.ts";
import { measureFuelRate } from "../../extension/fuel-rate.ts";
import { PluginPool } from "../../extension/plugin-pool.ts";
import { tellRefusal } from "../../extension/refusal.ts";
import { GatewayError } from "../../kernel/error.ts";
import { loadPolicies } from "../../pipeline/policy-load.ts";
import { count, type Examine, type Finding, fail, ok, warn } from "./finding.ts";

const elapsedMs = (): number => performance.now();
const ignore = (): void => undefined;

/** Loads the packs and plugins as the gateway does, their own tests included. What it saw of them before is not asked. */
export const examineExtensions: Examine = async ({ config }) => {
  const { packs, plugins } = config.policy;
  if (packs.length + plugins.length === 0) {
    return [
      warn(`there is none: every action gets \`${config.policy.defaultDecision}\``, "name a pack in `policy.packs`"),
    ];
  }
  const found: Finding[] = [];
  try {
    await load(config, (path, text) => {
      const mend = `\`gateway pack sign ${path}\` with a key that \`extensions.trust_policy\` names, or leave it out`;
      found.push(warn(`\`${path}\` is loaded although nobody trusted vouches for it: ${text}`, mend));
    });
    found.unshift(
      ok(`${count(packs.length, "pack")} and ${count(plugins.length, "plugin")} load, and pass their tests`),
    );
  } catch (cause) {
    found.unshift(fail(GatewayError.from(cause).message, "`gateway pack lint` and `gateway pack inspect` say more"));
  }
  return found;
};

async function load(config: GatewayConfig, onUntrusted: (path: string, text: string) => void): Promise<void> {
  const { packs, plugins, pluginWorkers, deadlineMs } = config.policy;
  const pool = new PluginPool({ threads: pluginWorkers, deadlineMs, observer: { threads: ignore, waiting: ignore } });
  try {
    await loadPolicies({
      packs,
      plugins,
      strict: config.extensions.strict,
      trustPolicy: config.extensions.trustPolicy,
      clock: Date.now,
      elapsedMs,
      pool,
      sliceFuel: measureFuelRate(elapsedMs),
      observer: { spent: ignore, breached: ignore, resting: ignore },
      lookUp: async () => undefined,
      onUntrusted: (path, refused) => onUntrusted(path, tellRefusal(refused)),
      onRefused: async () => undefined,
    });
  } finally {
    await pool.close();
  }
}
