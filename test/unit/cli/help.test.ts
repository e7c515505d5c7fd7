import { execFileSync } from "node:child_process";
import { fileURLToPath } from "node:url";
import { expect } from "chai";
import type { Command } from "commander";
import { examplesOf } from "../../../core/cli/command/description.ts";
import { buildProgram } from "../../../core/cli/program.ts";
import { argumentsOf, everyCommand } from "../../cli/command-tree.ts";

const cli = fileURLToPath(new URL("../../../core/cli/main.js", import.meta.url));

describe("the help of every command", () => {
  for (const { path, command } of everyCommand(buildProgram())) {
    const lines = examplesOf(command).split("\n");

    it(`\`${path}\` ends with examples, below what they are for`, () => {
      expect(lines[0]).to.match(/^# \S/);
      expect(lines.filter((line, at) => line.startsWith("#") && (lines[at + 1] ?? "#").startsWith("#"))).to.deep.equal(
        [],
      );
      expect(helpOf(command)).to.match(/\nExamples:\n( {2}.+\n)+$/);
    });

    it(`\`${path}\` shows command lines that are understood`, () => {
      for (const line of lines.filter((text) => !text.startsWith("#"))) {
        const reached = parse(argumentsOf(line));
        if (command.commands.length === 0) expect(reached, line).to.equal(path);
        else expect(reached, line).to.satisfy((told: string) => told.startsWith(`${path} `));
      }
    });
  }

  it("is bold in places on a terminal, and nowhere else", () => {
    const help = (env: NodeJS.ProcessEnv, command: string): string =>
      execFileSync("bash", ["--norc", "-c", command], { env: { PATH: process.env.PATH, ...env }, encoding: "utf8" });
    const shown = `'${process.execPath}' '${cli}' keys new --help`;
    const atTerminal = `script -qec "${shown}" /dev/null < /dev/null`;
    expect(help({ TERM: "xterm" }, atTerminal)).to.include("\u001b[1mExamples:\u001b[22m");
    expect(help({ TERM: "xterm", NO_COLOR: "1" }, atTerminal))
      .to.include("Examples:")
      .and.not.include("\u001b[1m");
    expect(help({ TERM: "xterm" }, shown))
      .to.include("Examples:")
      .and.not.include("\u001b");
  });

  it("would not pass with an example of an option that is gone", () => {
    expect(() => parse(argumentsOf("gateway serve --frob"))).to.throw("unknown option '--frob'");
    expect(() => parse(argumentsOf("gateway keys new --role root"))).to.throw("Allowed choices");
  });
});

function helpOf(command: Command): string {
  let text = "";
  command.configureOutput({ writeOut: (written) => (text += written), getOutHasColors: () => false }).outputHelp();
  return text;
}

/** The command that a line reaches, none of which is carried out. Throws commander's own words where it reaches none. */
function parse(words: readonly string[]): string {
  const program = buildProgram();
  let reached = "";
  for (const { path, command } of everyCommand(program)) {
    command.exitOverride().configureOutput({ writeErr: () => undefined });
    if (command.commands.length === 0)
      command.action(() => {
        reached = path;
      });
  }
  program.parse([...words], { from: "user" });
  return reached;
}
