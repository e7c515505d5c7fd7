import { GatewayError } from "../kernel/error.ts";
import type { JsonObject } from "../kernel/json.ts";
import type { Mode, Policy, PolicyRef } from "../kernel/policy.ts";
import type { Clock } from "../kernel/port.ts";
import type { VerifiedExtension } from "../kernel/verified-extension.ts";
import { packVariables } from "./cel/scope.ts";
import { checkClaim } from "./claim.ts";
import { Faults } from "./fault.ts";
import type { Manifest } from "./manifest.ts";
import { PackPolicy } from "./pack-policy.ts";
import { readSource } from "./pack-source.ts";
import type { Rule } from "./rule.ts";
import { runCase, type TestResult } from "./test-case.ts";
import { mergeTestSettings, type ReadyTest, requirePassed } from "./test-file.ts";
import { tryRules } from "./trial.ts";

export interface PackOptions {
  /** The pack's files, as they were verified or accepted: nothing else is read. */
  readonly extension: VerifiedExtension;
  /** What faults call the pack: its folder as the operator named it. */
  readonly path: string;
  readonly mode: Mode;
  /** The operator's values for the pack's settings. */
  readonly settings: JsonObject;
  /** Globs of the rules that the operator tries out: what they say is recorded, and never counts. */
  readonly shadowRules: readonly string[];
  /** Tells what has expired. */
  readonly clock: Clock;
}

/** What a reviewer or an operator may want to know of a rule; the policy itself does not need it. */
export type RuleSummary = Pick<
  Rule,
  "id" | "title" | "decision" | "severity" | "risk" | "mode" | "remediation" | "references" | "expires"
>;

export interface LoadedPack {
  readonly extension: VerifiedExtension;
  readonly ref: PolicyRef;
  readonly policy: Policy;
  readonly title: string;
  readonly namespace: string;
  readonly ruleCount: number;
  readonly rules: readonly RuleSummary[];
  readonly sequence: number;
  readonly issuedAt: string | undefined;
  readonly expiresAt: string | undefined;
}

/** A pack that was read and compiled, but not tried yet. */
export interface CompiledPack {
  readonly pack: LoadedPack;
  /** Runs the pack's own tests, with its own defaults for settings and every rule in force: they are the author's statement. */
  test(): Promise<readonly TestResult[]>;
}

/**
 * Reads a pack, compiles it and runs its own tests.
 * Throws PACK_INVALID with every fault found, or with every test that failed; nothing of such a pack is used.
 */
export async function loadPack(options: PackOptions): Promise<LoadedPack> {
  const compiled = await compilePack(options);
  requirePassed(options.path, await compiled.test(), "PACK_INVALID");
  return compiled.pack;
}

/** Packs work side by side: two of one name or one namespace are PACK_INVALID. */
export function refuseTwins(packs: readonly LoadedPack[]): void {
  packs.forEach((pack, index) => {
    const twin = packs.slice(0, index).find((other) => isTwin(pack, other));
    if (twin === undefined) return;
    throw new GatewayError(
      "PACK_INVALID",
      `\`${pack.ref.name}\`: expected a name and a namespace of its own, got those of \`${twin.ref.name}\``,
    );
  });
}

function isTwin(pack: LoadedPack, other: LoadedPack): boolean {
  return other.namespace === pack.namespace || other.ref.name === pack.ref.name;
}

/** Compiles a pack from the bytes that were vouched for. Throws PACK_INVALID with every fault. */
export async function compilePack(options: PackOptions): Promise<CompiledPack> {
  const faults = new Faults();
  const now = new Date(options.clock()).toISOString();
  const { extension } = options;
  const source = await readSource(extension, now, faults);
  faults.throwIfAny(options.path);
  if (source === undefined) throw new TypeError("compilePack: expected a pack or a fault");
  const { manifest } = source;
  checkClaim(manifest, extension, faults);
  const merged = mergeSettings(manifest, options.settings, faults);
  const tests = mergeTestSettings(source.tests, manifest.settings, faults);
  const rules = tryRules(source.rules, options.shadowRules, manifest.place, faults);
  faults.throwIfAny(options.path);

  const ref: PolicyRef = {
    kind: "pack",
    name: manifest.name,
    version: manifest.version,
    digest: extension.digest,
    signer: extension.signer,
  };
  const build = (settings: JsonObject, mode: Mode, inForce: readonly Rule[]): Policy =>
    new PackPolicy({
      ref,
      mode,
      engine: source.engine,
      rules: inForce,
      variables: packVariables(settings, source.data),
      tightenOnly: manifest.tightenOnly || extension.tightenOnly,
    });
  return {
    pack: describe(manifest, rules, build(merged, options.mode, rules), extension),
    test: () => runTests(tests, (settings) => build(settings, "enforce", source.rules)),
  };
}

function mergeSettings(manifest: Manifest, settings: JsonObject, faults: Faults): JsonObject {
  try {
    return manifest.settings.merge(settings);
  } catch (error) {
    if (!(error instanceof RangeError)) throw error;
    faults.add(manifest.place, `settings from the configuration: ${error.message}`);
    return {};
  }
}

async function runTests(
  tests: readonly ReadyTest[],
  build: (settings: JsonObject) => Policy,
): Promise<readonly TestResult[]> {
  const results: TestResult[] = [];
  const policies = new Map<string, Policy>();
  for (const { test, settings } of tests) {
    const key = JSON.stringify(settings);
    const policy = policies.get(key) ?? build(settings);
    policies.set(key, policy);
    results.push(await runCase(test, policy));
  }
  return results;
}

function describe(
  manifest: Manifest,
  rules: readonly Rule[],
  policy: Policy,
  extension: VerifiedExtension,
): LoadedPack {
  return {
    extension,
    ref: policy.ref,
    policy,
    title: manifest.title,
    namespace: manifest.namespace,
    ruleCount: rules.length,
    rules: rules.map(({ id, title, decision, severity, risk, mode, remediation, references, expires }) => {
      return { id, title, decision, severity, risk, mode, remediation, references, expires };
    }),
    sequence: manifest.sequence,
    issuedAt: manifest.issuedAt,
    expiresAt: manifest.expiresAt,
  };
}
