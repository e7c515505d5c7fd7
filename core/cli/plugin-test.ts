import { Command } from "commander";
import type { PluginSource } from "../policy/plugin-source.ts";
import { type PluginTestResult, runPluginTests } from "../policy/plugin-test.ts";
import { failurePlaces, type Locate, readSourceMap } from "./plugin-build.ts";
import { openTestedPlugin } from "./plugin-folder.ts";
import { print, tellFaults } from "./print.ts";
import { repeatOnChange } from "./tree-watch.ts";

interface TestOptions {
  readonly watch?: true;
  readonly json?: true;
}

/** `gateway plugin test`. */
export function testCommand(): Command {
  return new Command("test")
    .description("run a plugin's own tests in the sandbox, and say what fuel each takes; exit 1 if one fails")
    .argument("[folder]", "the plugin's folder", ".")
    .option("--watch", "run them again after each change")
    .option("--json", "print JSON")
    .action((folder: string, { watch, json }: TestOptions) =>
      watch ? repeatOnChange(folder, () => testPlugin(folder, json)) : testPlugin(folder, json),
    );
}

/** Runs the tests once and prints each as it ends; sets the exit code to 1 where one fails. */
export async function testPlugin(folder: string, json: true | undefined): Promise<void> {
  const results = await tellFaults(json, () => runAll(folder, json));
  if (results === undefined) return;
  const failed = results.filter(({ failures }) => failures.length > 0);
  if (failed.length > 0) process.exitCode = 1;
  if (!json) return print(`${results.length} cases, ${failed.length} failed`);
  const told = failed.map(({ name, place, failures }) => ({ name, ...place, failures }));
  const fuel = results.map(({ name, fuelUsed }) => ({ name, units: fuelUsed }));
  print(JSON.stringify({ ok: failed.length === 0, cases: results.length, failed: told, fuel }));
}

async function runAll(folder: string, json: true | undefined): Promise<readonly PluginTestResult[]> {
  const { source, compiled, tests } = await openTestedPlugin(folder);
  const locate = await readSourceMap(folder, source.module);
  const told: PluginTestResult[] = [];
  const onResult = (result: PluginTestResult): void => {
    told.push({ ...result, failures: withPlace(result, source, locate) });
    if (!json) for (const line of told.slice(-1).flatMap(describe)) print(line);
  };
  await runPluginTests({ source, compiled, tests, onResult });
  return told;
}

/** Where a call broke off, that is what failed: all else follows from it. */
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

function describe({ name, place, failures, fuelUsed }: PluginTestResult): readonly string[] {
  if (failures.length === 0) return [`ok ${name} (${fuelUsed} units of fuel)`];
  return failures.map((failure) => `${place.file}:${place.line}:${place.column}: ${name}: ${failure}`);
}
