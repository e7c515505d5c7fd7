import type { TestResult } from "../policy/test-case.ts";
import { print } from "./print.ts";

/** Prints the results of an extension's own tests, each failure with its place; sets the exit code to 1 where one fails. */
export function reportTests(results: readonly TestResult[], json: true | undefined): void {
  const failed = results.filter(({ failures }) => failures.length > 0);
  if (failed.length > 0) process.exitCode = 1;
  if (json) {
    const faults = failed.map(({ name, place, failures }) => ({ name, ...place, failures }));
    print(JSON.stringify({ ok: failed.length === 0, cases: results.length, failed: faults }));
  } else {
    for (const line of failed.flatMap(describeFailures)) print(line);
    print(`${results.length} cases, ${failed.length} failed`);
  }
}

/** A line for each failure of a test. */
export function describeFailures({ name, place, failures }: TestResult): readonly string[] {
  return failures.map((failure) => `${place.file}:${place.line}:${place.column}: ${name}: ${failure}`);
}
