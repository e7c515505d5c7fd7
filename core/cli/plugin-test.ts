import type { PluginSource } from "../policy/plugin-source.ts";
import { type PluginTestResult, runPluginTests } from "../policy/plugin-test.ts";
import { openTestedPlugin } from "./plugin-folder.ts";
import { print, printFaults } from "./print.ts";
import { failurePlaces, type Locate, readSourceMap } from "./source-map.ts";
import { describeFailures } from "./test-report.ts";
import { repeatOnChange } from "./tree-watch.ts";

interface TestOptions {
  readonly watch?: true;
  readonly json?: true;
}

/** `gateway plugin test`. */
export function testPluginFolder(folder: string, { watch, json }: TestOptions): Promise<void> {
  return watch ? repeatOnChange(folder, () => testPlugin(folder, json)) : testPlugin(folder, json);
}

/** Runs the tests once and prints each result; sets the exit code to 1 where one fails. */
export async function testPlugin(folder: string, json: true | undefined): Promise<void> {
  const results = await printFaults(json, () => runAll(folder, json));
  if (results === undefined) return;
  const failed = results.filter(({ failures }) => failures.length > 0);
  if (failed.length > 0) process.exitCode = 1;
  if (!json) return print(`${results.length} cases, ${failed.length} failed`);
  const faults = failed.map(({ name, place, failures }) => ({ name, ...place, failures }));
  const fuel = results.map(({ name, fuelUsed }) => ({ name, units: fuelUsed }));
  print(JSON.stringify({ ok: failed.length === 0, cases: results.length, failed: faults, fuel }));
}

async function runAll(folder: string, json: true | undefined): Promise<readonly PluginTestResult[]> {
  const { source, compiled, tests } = await openTestedPlugin(folder);
  const locate = await readSourceMap(folder, source.module);
  const results: PluginTestResult[] = [];
  const onResult = (result: PluginTestResult): void => {
    const located = { ...result, failures: withPlace(result, source, locate) };
    results.push(located);
    if (!json) for (const line of describeResult(located)) print(line);
  };
  await runPluginTests({ source, compiled, tests, onResult });
  return results;
}

/** Replaces the failures of a call that trapped by the trap and its place: the others follow from it. */
function withPlace(
  { failures, verdict, stack }: PluginTestResult,
  { module, limits }: PluginSource,
  locate: Locate,
): readonly string[] {
  const { error } = verdict;
  const broken = failures.find((failure) => error !== undefined && failure.includes(error));
  if (stack === undefined || broken === undefined) return failures;
  const place = locate(failurePlaces(stack, module, limits.memoryPages));
  return [place === undefined ? broken : `${broken} (${place})`];
}

function describeResult(result: PluginTestResult): readonly string[] {
  const { name, failures, fuelUsed } = result;
  return failures.length === 0 ? [`ok ${name} (${fuelUsed} units of fuel)`] : describeFailures(result);
}
