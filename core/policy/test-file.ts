import type { JsonObject } from "../action/json.ts";
import { FaultList } from "../config/fault.ts";
import { readItems, startOf } from "./extension-file.ts";
import { mergeSettings, type SettingsSchema } from "./settings.ts";
import type { Subject } from "./test-action.ts";
import { parseCase, type TestCase, type TestResult } from "./test-case.ts";

/** A case with its settings: the author's defaults with the case's own applied. */
export interface ReadyTest {
  readonly test: TestCase;
  readonly settings: JsonObject;
}

/**
 * Reads the cases of an extension's `tests/*.yaml`, in the order of files and lines; a plugin's `tests/data/` is
 * skipped. Adds every fault to `faults`.
 */
export async function readTests(
  files: ReadonlyMap<string, Buffer>,
  subject: Subject,
  faults: FaultList,
): Promise<readonly TestCase[]> {
  const tests: TestCase[] = [];
  for (const [file, bytes] of files) {
    if (!file.startsWith("tests/") || (subject === "action" && file.startsWith("tests/data/"))) continue;
    if (!file.endsWith(".yaml")) faults.addAt(startOf(file), "expected `tests/*.yaml`; this one would be ignored");
    else
      for (const [index, node] of (await readItems(file, bytes, "cases", faults)).entries()) {
        tests.push(...parseCase(node, `cases[${index}]`, subject, faults));
      }
  }
  return tests;
}

export function mergeTestSettings(
  tests: readonly TestCase[],
  schema: SettingsSchema,
  faults: FaultList,
): readonly ReadyTest[] {
  return tests.map((test) => {
    const settings = mergeSettings(schema, test.settings, (message) => faults.addAt(test.place, message));
    return { test, settings };
  });
}

/** Throws `code` with every failed test and its place. */
export function requirePassed(
  path: string,
  results: readonly TestResult[],
  code: "PACK_INVALID" | "PLUGIN_INVALID" | "ENGINE_INVALID",
): void {
  const faults = new FaultList("");
  for (const { name, place, failures } of results) {
    for (const failure of failures) faults.addAt(place, `test \`${name}\`: ${failure}`);
  }
  faults.throwIfAny(code, path);
}
