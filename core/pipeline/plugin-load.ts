import type { CompiledModule } from "../extension/compiled-module.ts";
import { compilePlugin } from "../extension/plugin.ts";
import type { PluginPolicyOptions } from "../extension/plugin-policy.ts";
import type { Phase } from "../kernel/envelope.ts";
import type { JsonObject } from "../kernel/json.ts";
import type { Mode, Policy, PolicyRef } from "../kernel/policy.ts";
import { tightenPolicy } from "../kernel/tightened-policy.ts";
import type { VerifiedExtension } from "../kernel/verified-extension.ts";
import { readPlugin, readPluginTests } from "../policy/plugin-source.ts";
import { requirePassed } from "../policy/test-file.ts";
import { runPluginTests } from "./plugin-test.ts";

export interface PluginPlace {
  readonly path: string;
  readonly mode: Mode;
  readonly phases: readonly Phase[];
  readonly taints: readonly string[];
  readonly settings: JsonObject;
}

/** What plugins run with, and who hears of it. */
export type PluginPorts = Pick<PluginPolicyOptions, "elapsedMs" | "observer" | "sliceFuel" | "pool">;

export interface LoadedPlugin {
  readonly extension: VerifiedExtension;
  readonly ref: PolicyRef;
  readonly policy: Policy;
}

/**
 * Compiles a plugin from the bytes that were vouched for and runs its own tests. Rejects with PLUGIN_INVALID with every
 * fault, or with every test that failed.
 */
export async function loadPlugin(
  place: PluginPlace,
  extension: VerifiedExtension,
  { elapsedMs, observer, sliceFuel, pool }: PluginPorts,
): Promise<LoadedPlugin> {
  const source = readPlugin(place.path, extension, place.settings);
  const { name, version, module, settings, settingsSchema, limits } = source;
  const tests = await readPluginTests(place.path, extension, settingsSchema);
  const { digest, signer } = extension;
  const ref: PolicyRef = { kind: "plugin", name, version, digest, signer };
  const { mode, phases, taints } = place;
  const ports = { elapsedMs, observer, sliceFuel, pool };
  const onCompiled = async (compiled: CompiledModule): Promise<void> =>
    requirePassed(place.path, await runPluginTests({ source, compiled, tests }), "PLUGIN_INVALID");
  const policy = await compilePlugin({ ref, mode, phases, taints, settings, module, ...limits, ...ports, onCompiled });
  return { extension, ref, policy: extension.tightenOnly ? tightenPolicy(policy) : policy };
}
