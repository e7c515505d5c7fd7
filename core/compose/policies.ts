import type { GatewayError } from "../action/error.ts";
import type { PolicyRef } from "../action/policy.ts";
import type { Approvals } from "../approval/approvals.ts";
import { configDigest } from "../config/digest.ts";
import type { EngineConfig, GatewayConfig } from "../config/gateway-config.ts";
import type { EgressGuard } from "../egress/egress-guard.ts";
import type { EnginePorts } from "../engine/engine-load.ts";
import type { EngineObserver } from "../engine/engine-policy.ts";
import { DecisionSearch } from "../evidence/chain/decision-search.ts";
import type { Ledger } from "../evidence/ledger.ts";
import { configurationEvent, recordForTenants } from "../evidence/tenant-record.ts";
import { Explainer } from "../explain/explainer.ts";
import { memberHider } from "../explain/rendered-action.ts";
import type { FairShare } from "../http/fair-share.ts";
import type { Log } from "../observe/log.ts";
import type { Metrics } from "../observe/metrics.ts";
import type { RecentActions } from "../observe/recent-action.ts";
import { measureFuelRate } from "../plugin/fuel-rate.ts";
import { PluginPool } from "../plugin/plugin-pool.ts";
import type { PolicyChain } from "../policy/chain.ts";
import {
  type ExtensionLoader,
  extensionEvents,
  type LoadedExtension,
  type LoadedPolicies,
  loadExtensions as load,
  refusalEvent,
} from "../policy/extension-load.ts";
import { PassedTests } from "../policy/passed-tests.ts";
import type { Store } from "../store/open.ts";
import { SeenSequences } from "../trust/seen-sequence.ts";
import { elapsedMs, newId } from "./identity.ts";

interface Opening extends Recording {
  readonly metrics: Metrics;
  readonly egress: EgressGuard;
  readonly fairShare: FairShare;
}

interface Loading extends Omit<Opening, "fairShare"> {
  readonly pluginPool: PluginPool;
}

interface Recording {
  readonly store: Store;
  readonly ledger: Ledger;
  readonly log: Log;
}

/** The policies that a configuration names, and the threads that those of every later one share. */
export async function openPolicies(
  config: GatewayConfig,
  opening: Opening,
): Promise<LoadedPolicies & { readonly pluginPool: PluginPool }> {
  const { metrics, fairShare } = opening;
  const pluginPool = new PluginPool({
    threads: config.policy.pluginWorkers,
    deadlineMs: config.policy.deadlineMs,
    observer: {
      ran: ({ tenant, key }, ms) => fairShare.spend({ tenant, id: key }, ms),
      threads: (n) => metrics.plugins.threads(n),
      waiting: (n) => metrics.plugins.callsWaiting(n),
    },
  });
  try {
    return { ...(await loadPolicies(config, { ...opening, pluginPool })), pluginPool };
  } catch (cause) {
    await pluginPool.close();
    throw cause;
  }
}

/** The policies that a configuration names, verified and checked. What is refused is on record before this rejects. */
export async function loadPolicies(
  config: GatewayConfig,
  { store, ledger, log, metrics, egress, pluginPool }: Loading,
): Promise<LoadedPolicies> {
  const sequences = new SeenSequences(store);
  await new PassedTests(store).recall();
  if (config.policy.plugins.length > 0) pluginPool.warm();
  return load({
    packs: config.policy.packs,
    plugins: config.policy.plugins,
    others: await openEngines(config.policy.engines, {
      observer: engineObserver(log, metrics),
      egress,
      deadlineMs: config.policy.deadlineMs,
    }),
    strict: config.extensions.strict,
    trustPolicy: config.extensions.trustPolicy,
    clock: Date.now,
    elapsedMs,
    pool: pluginPool,
    sliceFuel: measureFuelRate(elapsedMs),
    observer: {
      spent: (share) => metrics.plugins.spent(share),
      breached: (_, reason) => metrics.plugins.breached(reason),
      circuitOpened: ({ name, digest }, tenant, openMs) => {
        metrics.plugins.circuitOpened();
        log.warn({ plugin: name, digest, tenant, open_ms: openMs }, "plugin_circuit_opened");
      },
    },
    lookUp: (claim) => sequences.lookUp(claim),
    onUntrusted: (path, { check, detail }) => log.warn({ path, check, detail }, "extension_untrusted"),
    onRefused: async (refused) => {
      const recorded = recordForTenants(ledger, tenantsOf(config), refused.map(refusalEvent), warnOf(log));
      // The refusal itself is what must reach the operator.
      await recorded.catch((cause) => log.error({ detail: String(cause) }, "extension_refusal_record_failed"));
    },
  });
}

function engineObserver(log: Log, metrics: Metrics): EngineObserver {
  return {
    failed: (...failure) => metrics.engines.failed(...failure),
    circuit: (engine, state) => {
      if (state === "open") log.warn({ engine }, "engine_circuit_opened");
      else log.info({ engine }, "engine_circuit_closed");
    },
  };
}

/** The loaders of the engines; their code is loaded where there is one. */
export async function openEngines(
  engines: readonly EngineConfig[],
  ports: EnginePorts,
): Promise<readonly ExtensionLoader[]> {
  if (engines.length === 0) return [];
  const { engineLoaders } = await import("../engine/engine-load.ts");
  return engineLoaders(engines, ports);
}

/** Opens the explainer of decisions. */
export function openExplainer(
  { evidence }: GatewayConfig,
  { store, ledger, chain, approvals, recent }: Explaining,
): Explainer {
  const search = new DecisionSearch({ store, ledger });
  return new Explainer({
    chain,
    recent,
    recorded: (tenant, id) => search.find(tenant, id),
    held: (...asked) => approvals.findHeld(...asked),
    hide: memberHider(evidence.redactFields),
    newId,
  });
}

interface Explaining extends Pick<Recording, "store" | "ledger"> {
  readonly chain: PolicyChain;
  readonly approvals: Approvals;
  readonly recent: RecentActions;
}

/** A change of the policies in force. */
interface Change {
  readonly event: "started" | "reloaded";
  readonly config: GatewayConfig;
  readonly policies: readonly PolicyRef[];
  readonly before: readonly LoadedExtension[];
  readonly after: readonly LoadedExtension[];
}

/**
 * Puts a change on the record of every tenant, and remembers what was trusted; durable when it resolves. Whose own tests passed
 * is remembered too, which may be lost.
 */
export async function recordChange({ store, ledger, log }: Recording, change: Change): Promise<void> {
  const { event, config, policies, before, after } = change;
  await new SeenSequences(store).remember(after.map(({ extension }) => extension));
  await new PassedTests(store).remember();
  const events = [
    ...extensionEvents(before, after),
    configurationEvent({ event, policies, configDigest: configDigest(config) }),
  ];
  await recordForTenants(ledger, tenantsOf(config), events, warnOf(log));
}

function tenantsOf({ keys, mcpGateway: { anonymousTenant } }: GatewayConfig): ReadonlySet<string> {
  const named = keys.map(({ tenant }) => tenant);
  return new Set(anonymousTenant === null ? named : [...named, anonymousTenant]);
}

function warnOf(log: Log): (tenant: string, error: GatewayError) => void {
  return (tenant, { code }) => log.warn({ tenant, code }, "tenant_refused");
}
