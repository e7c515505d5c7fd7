import { GatewayError } from "../action/error.ts";
import { compileGlob } from "../action/glob.ts";
import type { Clock } from "../action/id.ts";
import { deepFreeze, type Json, type JsonObject } from "../action/json.ts";
import type { Mode, Policy, PolicyRef } from "../action/policy.ts";
import { parseStrictJson } from "../action/strict-json.ts";
import { didYouMean } from "../action/suggestion.ts";
import { FaultList, type Place } from "../config/fault.ts";
import { VerifiedExtension } from "../trust/verified-extension.ts";
import { CelEngine } from "./cel/engine.ts";
import { recordShape, type Shape, shapes } from "./cel/syntax.ts";
import { readItems, readYamlFile, startOf } from "./extension-file.ts";
import { type PackManifest, parsePackManifest } from "./pack-manifest.ts";
import { PackPolicy } from "./pack-policy.ts";
import { hasPassed, notePassed } from "./passed-tests.ts";
import { parseRule, type Rule, type RuleContext } from "./rule.ts";
import { checkRuleSet } from "./rule-set.ts";
import { mergeSettings } from "./settings.ts";
import { runCase, type TestCase, type TestResult } from "./test-case.ts";
import { mergeTestSettings, type ReadyTest, readTests, requirePassed } from "./test-file.ts";

export interface PackOptions {
  /** The pack's verified or accepted files; nothing else is read. */
  readonly extension: VerifiedExtension;
  /** The pack's folder as the operator wrote it; named in faults. */
  readonly path: string;
  readonly mode: Mode;
  /** The operator's settings of the pack. */
  readonly settings: JsonObject;
  /** Globs of the rules that run in shadow mode: recorded, never counted. */
  readonly shadowRules: readonly string[];
  /** Decides what has expired. */
  readonly clock: Clock;
}

export interface LoadedPack {
  readonly extension: VerifiedExtension;
  readonly ref: PolicyRef;
  readonly policy: Policy;
  readonly title: string;
  readonly namespace: string;
  readonly ruleCount: number;
  readonly rules: readonly Rule[];
  readonly sequence: number;
  readonly issuedAt: string | undefined;
  readonly expiresAt: string | undefined;
}

/** A compiled pack whose tests have not run. */
export interface CompiledPack {
  readonly pack: LoadedPack;
  readonly tests: readonly ReadyTest[];
  /** Returns the pack as its own tests see it: with these settings and every rule enforced. */
  policyWith(settings: JsonObject): Policy;
  /** Runs the pack's own tests, with its default settings and every rule enforced: they are the author's statement. */
  test(): Promise<readonly TestResult[]>;
}

/**
 * Reads a pack, compiles it and runs its own tests, unless the same bytes passed them before. Throws PACK_INVALID with every
 * fault found, or with every failed test; nothing of such a pack is used.
 */
export async function loadPack(options: PackOptions): Promise<LoadedPack> {
  const { extension, path } = options;
  const compiled = await compilePack(options, !hasPassed(extension));
  requirePassed(path, await compiled.test(), "PACK_INVALID");
  notePassed(extension);
  return compiled.pack;
}

/** Refuses two packs of one name or one namespace with PACK_INVALID. */
export function refuseDuplicatePacks(packs: readonly LoadedPack[]): void {
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

/** Compiles a pack from its verified bytes, with its tests unless told otherwise. Throws PACK_INVALID with every fault. */
export async function compilePack(options: PackOptions, withTests = true): Promise<CompiledPack> {
  const faults = new FaultList("");
  const now = new Date(options.clock()).toISOString();
  const { extension } = options;
  const source = await readSource(extension, now, faults, withTests);
  faults.throwIfAny("PACK_INVALID", options.path);
  if (source === undefined) throw new TypeError("compilePack: expected a pack or a fault");
  const { manifest } = source;
  checkClaim(manifest, extension, faults);
  const merged = mergeSettings(manifest.settings, options.settings, (message) =>
    faults.addAt(manifest.place, `settings from the configuration: ${message}`),
  );
  const tests = mergeTestSettings(source.tests, manifest.settings, faults);
  const rules = applyShadowRules(source.rules, options.shadowRules, manifest.place, faults);
  faults.throwIfAny("PACK_INVALID", options.path);

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
      variables: { settings, data: source.data },
      tightenOnly: manifest.tightenOnly || extension.tightenOnly,
    });
  const policyWith = (settings: JsonObject): Policy => build(settings, "enforce", source.rules);
  return {
    pack: describe(manifest, rules, build(merged, options.mode, rules), extension),
    tests,
    policyWith,
    test: () => runTests(tests, policyWith),
  };
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
  manifest: PackManifest,
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
    rules,
    sequence: manifest.sequence,
    issuedAt: manifest.issuedAt,
    expiresAt: manifest.expiresAt,
  };
}

/** The parsed files of a pack. */
interface PackSource {
  readonly manifest: PackManifest;
  readonly engine: CelEngine;
  readonly rules: readonly Rule[];
  readonly tests: readonly TestCase[];
  readonly data: JsonObject;
}

const maxRules = 10_000;
const dataBounds = { depth: 32, nodes: 100_000, stringLength: 65_536, reader: "exact" } as const;

type Files = ReadonlyMap<string, Buffer>;

/**
 * Reads a pack's files and adds every fault to `faults`; with a fault nothing of the result may be used. Returns
 * undefined without a manifest.
 */
export async function readSource(
  extension: VerifiedExtension,
  now: string,
  faults: FaultList,
  withTests = true,
): Promise<PackSource | undefined> {
  const files = VerifiedExtension.open(extension);
  const manifest = readManifest(files, now, faults);
  if (manifest === undefined) return undefined;
  const engine = new CelEngine();
  const data = readData(files, faults);
  const context = {
    namespace: manifest.namespace,
    engine,
    settings: manifest.settings.shape,
    data: dataShape(data),
    faults,
  };
  const rules = await readRules(files, manifest, context);
  checkRuleSet(rules, now, faults);
  const tests = withTests ? await readTests(files, "envelope", faults) : [];
  return { manifest, engine, rules, tests, data };
}

function readManifest(files: Files, now: string, faults: FaultList): PackManifest | undefined {
  const bytes = files.get("pack.yaml");
  if (bytes === undefined) {
    faults.addAt(startOf("pack.yaml"), "expected a manifest, got no such file");
    return undefined;
  }
  const root = readYamlFile("pack.yaml", bytes, faults);
  return root === undefined ? undefined : parsePackManifest(root, now, faults);
}

async function readRules(files: Files, manifest: PackManifest, context: RuleContext): Promise<readonly Rule[]> {
  const globs = manifest.rules.map(compileGlob);
  const rules: Rule[] = [];
  for (const [file, bytes] of files) {
    const named = file.endsWith(".yaml") && globs.some((glob) => glob.test(file));
    if (named) {
      const nodes = await readItems(file, bytes, "rules", context.faults);
      for (const [index, node] of nodes.entries()) {
        const rule = parseRule(node, `rules[${index}]`, rules.length, context);
        if (rule !== undefined) rules.push(rule);
      }
    } else if (file.startsWith("rules/")) {
      // A rule file that is not read would look like protection.
      context.faults.addAt(
        startOf(file),
        `expected a file named by ${manifest.rules.join(", ")}; this one would be ignored`,
      );
    }
  }
  if (rules.length === 0 && context.faults.count === 0) {
    context.faults.addAt(manifest.place, "expected at least one rule, got none");
  }
  if (rules.length > maxRules) {
    context.faults.addAt(manifest.place, `expected at most ${maxRules} rules, got ${rules.length}`);
  }
  return rules;
}

/** Reads `data/<name>.json` by name. */
function readData(files: Files, faults: FaultList): JsonObject {
  const data: Record<string, Json> = {};
  for (const [file, bytes] of files) {
    if (!file.startsWith("data/")) continue;
    const name = /^data\/([a-z][a-z0-9_]*)\.json$/.exec(file)?.[1];
    if (name === undefined) {
      faults.addAt(startOf(file), "expected `data/<name>.json`, the name of a–z, 0–9 and `_`");
      continue;
    }
    try {
      data[name] = deepFreeze(parseStrictJson(bytes, dataBounds));
    } catch (error) {
      faults.addAt(startOf(file), GatewayError.from(error).message);
    }
  }
  return data;
}

function dataShape(data: JsonObject): Shape {
  return recordShape(Object.fromEntries(Object.keys(data).map((name) => [name, shapes.json])));
}

/** The identity in a manifest. */
interface Claimed {
  readonly name: string;
  readonly version: string;
  readonly sequence: number;
  readonly place: Place;
}

/** Refuses a manifest that differs from its signed claim: signers and sequences are bound to the name. */
export function checkClaim(manifest: Claimed, { claim }: VerifiedExtension, faults: FaultList): void {
  if (claim === null) return;
  for (const key of ["name", "version", "sequence"] as const) {
    if (manifest[key] === claim[key]) continue;
    faults.addAt(manifest.place, `expected \`${key}\` as it was signed, \`${claim[key]}\`, got \`${manifest[key]}\``);
  }
}

/**
 * Applies the operator's globs of rules that run in shadow mode. A glob that matches no rule is a fault: the rule would
 * be enforced against the operator's intent. So are globs that match every rule.
 */
function applyShadowRules(rules: readonly Rule[], globs: readonly string[], place: Place, faults: FaultList): Rule[] {
  const tried = new Set<Rule>();
  for (const pattern of globs) {
    const glob = compileGlob(pattern);
    const found = rules.filter(({ id }) => glob.test(id));
    for (const rule of found) tried.add(rule);
    if (found.length > 0) continue;
    const ids = rules.map(({ id }) => id);
    faults.addAt(
      place,
      `\`shadow_rules\`: expected a rule of this pack, got \`${pattern}\`${didYouMean(pattern, ids)}`,
    );
  }
  if (tried.size === rules.length)
    faults.addAt(place, "`shadow_rules`: expected to leave a rule in force; `mode: shadow` tries out the whole pack");
  return rules.map((rule) => (tried.has(rule) ? { ...rule, mode: "shadow" } : rule));
}
