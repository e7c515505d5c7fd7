import { GatewayError } from "../kernel/error.ts";
import { compileGlob } from "../kernel/glob.ts";
import { deepFreeze, type Json, type JsonObject } from "../kernel/json.ts";
import { parseStrictJson } from "../kernel/strict-json.ts";
import { VerifiedExtension } from "../kernel/verified-extension.ts";
import { CelEngine } from "./cel/engine.ts";
import { recordShape, type Shape, shapeOf } from "./cel/shape.ts";
import type { Faults } from "./fault.ts";
import { type Manifest, parseManifest } from "./manifest.ts";
import { parseRule, type Rule, type RuleContext } from "./rule.ts";
import { checkRules } from "./rule-set.ts";
import type { TestCase } from "./test-case.ts";
import { readTests } from "./test-file.ts";
import { readItems, readYamlFile, startOf } from "./yaml/file.ts";

/** Everything a pack's files say. */
export interface PackSource {
  readonly manifest: Manifest;
  readonly engine: CelEngine;
  readonly rules: readonly Rule[];
  readonly tests: readonly TestCase[];
  readonly data: JsonObject;
}

const mostRules = 10_000;
const dataBounds = { depth: 32, nodes: 100_000, stringLength: 65_536, reader: "exact" } as const;

type Files = ReadonlyMap<string, Buffer>;

/**
 * Reads a pack's files. What is wrong goes to `faults`, and with a fault nothing read may be used; undefined where there
 * is no manifest to begin with.
 */
export async function readSource(
  extension: VerifiedExtension,
  now: string,
  faults: Faults,
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
  checkRules(rules, now, faults);
  const tests = await readTests(files, "envelope", faults);
  return { manifest, engine, rules, tests, data };
}

function readManifest(files: Files, now: string, faults: Faults): Manifest | undefined {
  const bytes = files.get("pack.yaml");
  if (bytes === undefined) {
    faults.add(startOf("pack.yaml"), "expected a manifest, got no such file");
    return undefined;
  }
  const root = readYamlFile("pack.yaml", bytes, faults);
  return root === undefined ? undefined : parseManifest(root, now, faults);
}

async function readRules(files: Files, manifest: Manifest, context: RuleContext): Promise<readonly Rule[]> {
  const globs = manifest.rules.map(compileGlob);
  const rules: Rule[] = [];
  for (const [file, bytes] of files) {
    const named = file.endsWith(".yaml") && globs.some((glob) => glob.test(file));
    if (named) {
      const nodes = await readItems(file, bytes, "rules", context.faults);
      for (const node of nodes) rules.push(parseRule(node, rules.length, context));
    } else if (file.startsWith("rules/")) {
      // A rule nobody reads would look like protection.
      context.faults.add(
        startOf(file),
        `expected a file named by ${manifest.rules.join(", ")}; this one would be ignored`,
      );
    }
  }
  if (rules.length === 0 && context.faults.count === 0) {
    context.faults.add(manifest.place, "expected at least one rule, got none");
  }
  if (rules.length > mostRules) {
    context.faults.add(manifest.place, `expected at most ${mostRules} rules, got ${rules.length}`);
  }
  return rules;
}

/** `data/<name>.json` by name. */
function readData(files: Files, faults: Faults): JsonObject {
  const data: Record<string, Json> = {};
  for (const [file, bytes] of files) {
    if (!file.startsWith("data/")) continue;
    const name = /^data\/([a-z][a-z0-9_]*)\.json$/.exec(file)?.[1];
    if (name === undefined) {
      faults.add(startOf(file), "expected `data/<name>.json`, the name of a–z, 0–9 and `_`");
      continue;
    }
    try {
      data[name] = deepFreeze(parseStrictJson(bytes, dataBounds));
    } catch (error) {
      faults.add(startOf(file), GatewayError.from(error).message);
    }
  }
  return data;
}

function dataShape(data: JsonObject): Shape {
  return recordShape(Object.fromEntries(Object.keys(data).map((name) => [name, shapeOf.json])));
}
