import type { Failure, ScenarioResult } from "./suite.ts";

/** Both runs side by side, a line a scenario, with the reasons of what failed through the gateway alone. */
export function comparisonTable(direct: readonly ScenarioResult[], governed: readonly ScenarioResult[]): string {
  const lines = direct.map((one) => {
    const other = governed.find(({ scenario }) => scenario === one.scenario);
    const name = one.scored ? one.scenario : `(${one.scenario})`;
    return `${name.padEnd(48)} ${counts(one).padStart(10)} ${counts(other).padStart(10)}${newFaults(one, other)}`;
  });
  const total = `${"scored checks".padEnd(48)} ${totals(direct).padStart(10)} ${totals(governed).padStart(10)}`;
  return [`${"".padEnd(48)} ${"direct".padStart(10)} ${"governed".padStart(10)}`, ...lines, total, ""].join("\n");
}

/** `<passed> passed, <failed> failed` of each scored scenario, by its name. */
export function scoredCounts(results: readonly ScenarioResult[]): Readonly<Record<string, string>> {
  const scored = results.filter((result) => result.scored);
  return Object.fromEntries(scored.map((one) => [one.scenario, `${one.passed} passed, ${one.failures.length} failed`]));
}

/** What fails through the gateway that does not fail directly. */
export function newFailures(direct: ScenarioResult, governed: ScenarioResult | undefined): readonly Failure[] {
  const known = new Set(direct.failures.map(({ check }) => check));
  return governed?.failures.filter(({ check }) => !known.has(check)) ?? [];
}

function counts(result: ScenarioResult | undefined): string {
  return result === undefined ? "none" : `${result.passed}/${result.passed + result.failures.length}`;
}

function totals(results: readonly ScenarioResult[]): string {
  const scored = results.filter((result) => result.scored);
  const passed = scored.reduce((sum, { passed }) => sum + passed, 0);
  const failed = scored.reduce((sum, { failures }) => sum + failures.length, 0);
  return `${passed}/${passed + failed}`;
}

function newFaults(direct: ScenarioResult, governed: ScenarioResult | undefined): string {
  return newFailures(direct, governed)
    .map(({ check, message }) => `\n    ${check}: ${message}`)
    .join("");
}
