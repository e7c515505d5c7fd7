import { appendFileSync } from "node:fs";
import { relative } from "node:path";
import Mocha from "mocha";
import { repositoryRoot } from "../check/source-tree.ts";

const shown = 40;

/**
 * Mocha's reporter `dot` for long runs: adds the path of each test file with a failure to the file that FAILED_FILES names, and
 * prints last which files took longest, each with the time of its tests and hooks.
 */
class RunReporter extends Mocha.reporters.Dot {
  readonly #tookMs = new Map<string, number>();

  constructor(runner: Mocha.Runner, options: Mocha.MochaOptions) {
    super(runner, options);
    const path = process.env.FAILED_FILES;
    const failed = new Set<string>();
    runner.on("fail", ({ file, parent }) => {
      const name = file ?? parent?.file;
      if (path === undefined || name === undefined || failed.has(name)) return;
      failed.add(name);
      appendFileSync(path, `${name}\n`);
    });
    for (const event of ["test end", "hook end"] as const) {
      runner.on(event, ({ file, duration }: Mocha.Runnable) => {
        if (file !== undefined) this.#tookMs.set(file, (this.#tookMs.get(file) ?? 0) + (duration ?? 0));
      });
    }
    runner.on("end", () => this.#printSlowest());
  }

  #printSlowest(): void {
    const files = [...this.#tookMs].sort(([, one], [, other]) => other - one);
    const sum = files.reduce((total, [, ms]) => total + ms, 0);
    const lines = files
      .slice(0, shown)
      .map(([file, ms]) => `${inSeconds(ms).padStart(8)}  ${relative(repositoryRoot, file)}`);
    process.stdout.write(
      `\n  The slowest of ${files.length} files, which took ${inSeconds(sum)} together:\n${lines.join("\n")}\n`,
    );
  }
}

function inSeconds(ms: number): string {
  return `${(ms / 1000).toFixed(1)} s`;
}

export { RunReporter as "module.exports" };
