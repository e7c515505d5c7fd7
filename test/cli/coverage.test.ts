import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect } from "chai";
import { buildProgram } from "../../core/cli/program.ts";
import { repositoryRoot } from "../check/source-tree.ts";
import { everyLeaf } from "./command-tree.ts";
import { parseTranscript, type Step } from "./transcript.ts";

const folder = join(repositoryRoot, "test", "cli");
const leaves = everyLeaf(buildProgram());
const steps = readSteps();

describe("every command", () => {
  for (const { path, command } of leaves) {
    it(`\`${path}\` takes --json`, () => {
      expect(command.options.some(({ long }) => long === "--json")).to.equal(true);
    });

    it(`\`${path}\` is shown doing its work, and refusing to`, () => {
      const codes = steps.filter((step) => lastCommand(step.command) === path).map(({ code }) => code);
      expect(codes.some(isDone), "a transcript of test/cli in which it does").to.equal(true);
      expect(
        codes.some((code) => code !== 0),
        "a transcript of test/cli in which it does not",
      ).to.equal(true);
    });

    it(`\`${path}\` is shown with --json`, () => {
      const told = steps.filter(({ command: text }) => text.includes("--json") && lastCommand(text) === path);
      expect(
        told.some(({ code }) => isDone(code)),
        "a transcript",
      ).to.equal(true);
    });
  }
});

describe("lastCommand(text)", () => {
  it("is the command whose exit code a step returns, by all its words", () => {
    expect(lastCommand("gateway keys new && gateway evidence keys list --json")).to.equal("gateway evidence keys list");
    expect(lastCommand("gateway approvals show $(gateway approvals list)")).to.equal("gateway approvals show");
    expect(lastCommand("gateway approvals --help")).to.equal(undefined);
    expect(lastCommand("gateway approvals listing")).to.equal(undefined);
  });
});

/** The leaf that a line calls last, beside those whose output it takes: it is the one whose exit code counts. */
function lastCommand(text: string): string | undefined {
  const outer = text.replace(/\$\((?:[^()]|\([^()]*\))*\)/g, "");
  const calls = [...outer.matchAll(/\bgateway(?: [a-z][a-z-]*)+/g)].map(([words]) => words);
  const words = calls.at(-1);
  const fitting = leaves.filter(({ path }) => words === path || words?.startsWith(`${path} `));
  return fitting.toSorted((a, b) => b.path.length - a.path.length)[0]?.path;
}

/** Beyond 10 are the verdicts of what verifies. */
function isDone(code: number): boolean {
  return code === 0 || code >= 10;
}

function readSteps(): readonly Step[] {
  const files = readdirSync(folder, { recursive: true, encoding: "utf8" }).filter((file) => file.endsWith(".txt"));
  return files.flatMap((file) => parseTranscript(readFileSync(join(folder, file), "utf8")));
}
