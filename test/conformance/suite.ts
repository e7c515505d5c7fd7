import { execFile } from "node:child_process";
import { mkdtemp, readdir, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { parse } from "yaml";
import { node22 } from "../support/node-22.ts";

export const revisions = ["2025-11-25", "2026-07-28"] as const;
export type Revision = (typeof revisions)[number];

/** What one scenario of the suite found. */
export interface ScenarioResult {
  readonly scenario: string;
  /** Whether the revision requires it; the others run for information. */
  readonly scored: boolean;
  /** How many checks succeeded. */
  readonly passed: number;
  /** The checks that failed or warned. */
  readonly failures: readonly Failure[];
}

export interface Failure {
  readonly check: string;
  readonly message: string;
}

interface Check {
  readonly id: string;
  readonly status: "SUCCESS" | "FAILURE" | "WARNING" | "SKIPPED" | "INFO";
  readonly errorMessage?: string;
}

const packageFolder = fileURLToPath(
  new URL(".", import.meta.resolve("@modelcontextprotocol/conformance/package.json")),
);
const deadlineMs = 180_000;

/**
 * Runs everything the official conformance suite requires of a server of `revision` against `url`, in the order of
 * the requirement set. Throws when a scenario left no result: a suite that stopped half way has not passed.
 */
export async function runSuite(url: string, revision: Revision): Promise<readonly ScenarioResult[]> {
  const folder = await mkdtemp(join(tmpdir(), "conformance-"));
  try {
    const tail = await runProgram(["server", "--url", url, "--requirements", revision, "--output-dir", folder]);
    const checks = await readChecks(folder);
    return (await requirementsOf(revision)).map(({ scenario, scored }) => {
      const found = checks.get(scenario);
      if (found === undefined) throw new Error(`expected a result of \`${scenario}\`, got none; output ends:\n${tail}`);
      return summarize(scenario, scored, found);
    });
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

/** Resolves with the end of the output. An exit code of 1 only says that a check failed. */
function runProgram(args: readonly string[]): Promise<string> {
  const program = join(packageFolder, "dist/index.js");
  const options = { timeout: deadlineMs, maxBuffer: 64 * 1024 * 1024 };
  return new Promise((resolve, reject) => {
    const child = execFile(node22(), [program, ...args], options, (error, stdout, stderr) => {
      const tail = `${stdout}${stderr}`.slice(-2000);
      if (error === null || error.code === 1) resolve(tail);
      else reject(new Error(`the conformance suite did not end as it should: ${error.message}\n${tail}`));
    });
    child.stdin?.end();
  });
}

/** Results by scenario. The suite names a folder `server-<scenario>-<time>`. */
async function readChecks(folder: string): Promise<ReadonlyMap<string, readonly Check[]>> {
  const results = new Map<string, readonly Check[]>();
  for (const name of await readdir(folder)) {
    const scenario = /^server-(.+)-\d{4}-\d{2}-\d{2}T[\d-]+Z$/.exec(name)?.[1];
    if (scenario === undefined) throw new Error(`expected a folder of results, got \`${name}\``);
    results.set(scenario, JSON.parse(await readFile(join(folder, name, "checks.json"), "utf8")) as Check[]);
  }
  return results;
}

function summarize(scenario: string, scored: boolean, checks: readonly Check[]): ScenarioResult {
  return {
    scenario,
    scored,
    passed: checks.filter(({ status }) => status === "SUCCESS").length,
    failures: checks
      .filter(({ status }) => status === "FAILURE" || status === "WARNING")
      .map(({ id, errorMessage }) => ({ check: id, message: errorMessage ?? "no message" })),
  };
}

interface RequirementSet {
  readonly server: readonly string[];
  readonly not_scored: readonly { readonly scenario: string; readonly leg: string }[];
}

async function requirementsOf(revision: Revision): Promise<readonly { scenario: string; scored: boolean }[]> {
  const text = await readFile(join(packageFolder, `requirements/${revision}.yaml`), "utf8");
  const set = parse(text) as RequirementSet;
  const others = set.not_scored.filter(({ leg }) => leg === "server");
  return [
    ...set.server.map((scenario) => ({ scenario, scored: true })),
    ...others.map(({ scenario }) => ({ scenario, scored: false })),
  ];
}
