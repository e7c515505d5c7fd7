import { isUtf8 } from "node:buffer";
import { setImmediate as nextTurn } from "node:timers/promises";
import { GatewayError } from "../kernel/error.ts";
import { compileGlob } from "../kernel/glob.ts";
import { deepFreeze, type Json, type JsonObject } from "../kernel/json.ts";
import { parseStrictJson } from "../kernel/strict-json.ts";
import { CelEngine } from "./cel/engine.ts";
import { recordShape, type Shape, shapeOf } from "./cel/shape.ts";
import type { Faults, Place } from "./fault.ts";
import { type FolderSnapshot, readFolder } from "./folder.ts";
import { type Manifest, parseManifest } from "./manifest.ts";
import { parseRule, type Rule, type RuleContext } from "./rule.ts";
import { checkRules } from "./rule-set.ts";
import { parseCase, type TestCase } from "./test-case.ts";
import type { YamlNode } from "./yaml/node.ts";
import { parseYaml } from "./yaml/parse.ts";
import { readRootList } from "./yaml/reader.ts";

/** Everything a pack's folder says, out of one snapshot. */
export interface PackSource {
  readonly digest: string;
  readonly manifest: Manifest;
  readonly engine: CelEngine;
  readonly rules: readonly Rule[];
  readonly tests: readonly TestCase[];
  readonly data: JsonObject;
}

const mostRules = 10_000;
const dataBounds = { depth: 32, nodes: 100_000, stringLength: 65_536, reader: "exact" } as const;

/**
 * Reads a pack's folder. What is wrong goes to `faults`, and with a fault nothing read may be used; undefined where
 * there is no manifest to begin with. Throws PACK_INVALID where the folder cannot be read at all.
 */
export async function readSource(path: string, now: string, faults: Faults): Promise<PackSource | undefined> {
  const snapshot = await takeSnapshot(path, faults);
  const manifest = readManifest(snapshot, now, faults);
  if (manifest === undefined) return undefined;
  const engine = new CelEngine();
  const data = readData(snapshot, faults);
  const context = {
    namespace: manifest.namespace,
    engine,
    settings: manifest.settings.shape,
    data: dataShape(data),
    faults,
  };
  const rules = await readRules(snapshot, manifest, context);
  checkRules(rules, now, faults);
  const tests = await readTests(snapshot, faults);
  return { digest: snapshot.digest, manifest, engine, rules, tests, data };
}

const unreadable: Readonly<Record<string, string>> = {
  ENOENT: "no such folder",
  ENOTDIR: "not a folder",
  EACCES: "this user may not read it",
};

async function takeSnapshot(path: string, faults: Faults): Promise<FolderSnapshot> {
  try {
    return await readFolder(path, faults);
  } catch (cause) {
    const code = cause instanceof Error && "code" in cause ? String(cause.code) : String(cause);
    throw new GatewayError("PACK_INVALID", `\`${path}\` cannot be read: ${unreadable[code] ?? code}`, { cause });
  }
}

function readManifest(snapshot: FolderSnapshot, now: string, faults: Faults): Manifest | undefined {
  const bytes = snapshot.files.get("pack.yaml");
  if (bytes === undefined) {
    faults.add(startOf("pack.yaml"), "expected a manifest, got no such file");
    return undefined;
  }
  const root = readYaml("pack.yaml", bytes, faults);
  return root === undefined ? undefined : parseManifest(root, now, faults);
}

async function readRules(snapshot: FolderSnapshot, manifest: Manifest, context: RuleContext): Promise<readonly Rule[]> {
  const globs = manifest.rules.map(compileGlob);
  const rules: Rule[] = [];
  for (const [file, bytes] of snapshot.files) {
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

async function readTests(snapshot: FolderSnapshot, faults: Faults): Promise<readonly TestCase[]> {
  const tests: TestCase[] = [];
  for (const [file, bytes] of snapshot.files) {
    if (!file.startsWith("tests/")) continue;
    if (!file.endsWith(".yaml")) faults.add(startOf(file), "expected `tests/*.yaml`; this one would be ignored");
    else for (const node of await readItems(file, bytes, "cases", faults)) tests.push(...parseCase(node, faults));
  }
  return tests;
}

async function readItems(file: string, bytes: Buffer, key: string, faults: Faults): Promise<readonly YamlNode[]> {
  // A reload happens while requests are served: let them in between files.
  await nextTurn();
  const root = readYaml(file, bytes, faults);
  return root === undefined ? [] : readRootList(root, key, `\`${file}\``, faults);
}

function readYaml(file: string, bytes: Buffer, faults: Faults): YamlNode | undefined {
  if (isUtf8(bytes)) return parseYaml(file, bytes.toString("utf8"), faults);
  faults.add(startOf(file), "expected UTF-8, got invalid bytes");
  return undefined;
}

/** `data/<name>.json` by name. */
function readData(snapshot: FolderSnapshot, faults: Faults): JsonObject {
  const data: Record<string, Json> = {};
  for (const [file, bytes] of snapshot.files) {
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

function startOf(file: string): Place {
  return { file, line: 1, column: 1 };
}
