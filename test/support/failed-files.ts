import { appendFileSync } from "node:fs";
import Mocha from "mocha";

/** Mocha's reporter `dot`, which also adds the path of each test file with a failure to the file that FAILED_FILES names. */
class FailedFiles extends Mocha.reporters.Dot {
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
  }
}

export { FailedFiles as "module.exports" };
