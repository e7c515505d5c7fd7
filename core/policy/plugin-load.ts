import type { Phase, Protocol } from "../action/envelope.ts";
import type { JsonObject } from "../action/json.ts";
import type { Finding, Mode, Policy, PolicyRef, Verdict } from "../action/policy.ts";
import { compilePlugin, type PluginPolicyOptions } from "../plugin/plugin.ts";
import type { CompiledModule } from "../plugin/plugin-machine.ts";
import type { VerifiedExtension } from "../trust/verified-extension.ts";
import { hasPassed, notePassed } from "./passed-tests.ts";
import { readPlugin, readPluginTests } from "./plugin-source.ts";
import { runPluginTests } from "./plugin-test.ts";
import { requirePassed } from "./test-file.ts";

export interface PluginPlace {
  readonly path: string;
  readonly mode: Mode;
  readonly phases: readonly Phase[];
  readonly taints: readonly string[];
  readonly settings: JsonObject;
}

/** The services that plugins need. */
export type PluginPorts = Pick<PluginPolicyOptions, "elapsedMs" | "observer" | "sliceFuel" | "pool">;

/** A policy with the extension it was compiled from. */
export interface LoadedPolicy {
  readonly extension: VerifiedExtension;
  readonly ref: PolicyRef;
  readonly policy: Policy;
}

/**
 * Compiles a plugin from its verified bytes and runs its own tests, unless the same bytes passed them before. Rejects with
 * PLUGIN_INVALID with every fault, or with every failed test.
 */
export async function loadPluginPolicy(
  place: PluginPlace,
  extension: VerifiedExtension,
  { elapsedMs, observer, sliceFuel, pool }: PluginPorts,
): Promise<LoadedPolicy> {
  const source = readPlugin(place.path, extension, place.settings);
  const { name, version, module, settings, settingsSchema, limits } = source;
  const tests = hasPassed(extension) ? [] : await readPluginTests(place.path, extension, settingsSchema);
  const { digest, signer } = extension;
  const ref: PolicyRef = { kind: "plugin", name, version, digest, signer };
  const { mode, phases, taints } = place;
  const ports = { elapsedMs, observer, sliceFuel, pool };
  const onCompiled = async (compiled: CompiledModule): Promise<void> =>
    requirePassed(place.path, await runPluginTests({ source, compiled, tests }), "PLUGIN_INVALID");
  const policy = await compilePlugin({ ref, mode, phases, taints, settings, module, ...limits, ...ports, onCompiled });
  notePassed(extension);
  return { extension, ref, policy: extension.tightenOnly ? tightenPolicy(policy) : policy };
}

/** Wraps a policy so that its `allow` counts as abstain: recorded, without effect. */
export function tightenPolicy(policy: Policy): Policy {
  const { ref, mode, taints = [], maxWaitMs = 0, explainer, replayable } = policy;
  const readsOutput = (protocol: Protocol): boolean => policy.readsOutput?.(protocol) ?? true;
  const taintsOutput = (protocol: Protocol): boolean => policy.taintsOutput?.(protocol) ?? false;
  return {
    ref,
    mode,
    taints,
    maxWaitMs,
    readsOutput,
    taintsOutput,
    ...(explainer === undefined ? {} : { explainer }),
    ...(replayable === undefined ? {} : { replayable }),
    evaluate: (action, cancel) => tighten(policy.evaluate(action, cancel)),
  };
}

function tighten(verdict: Verdict | Promise<Verdict>): Verdict | Promise<Verdict> {
  return verdict instanceof Promise ? verdict.then(withoutAllow) : withoutAllow(verdict);
}

function withoutAllow(verdict: Verdict): Verdict {
  const findings = verdict.findings.map(
    (finding): Finding => (finding.decision === "allow" ? { ...finding, mode: "shadow" } : finding),
  );
  return { ...verdict, findings, decision: verdict.decision === "allow" ? "abstain" : verdict.decision };
}
