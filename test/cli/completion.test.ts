import { execFileSync } from "node:child_process";
import { chmodSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect } from "chai";
import { Command, Option } from "commander";
import { bashScript, fishScript, shapeOf, zshScript } from "../../core/cli/completion.ts";
import { buildProgram } from "../../core/cli/program.ts";

const program = fileURLToPath(new URL("../../core/cli/main.js", import.meta.url));

/** A name, part of which would make a file if it were run. */
const hostile = "we$(touch pwned)`touch pwned`;touch pwned;'\"x.yaml";

/** How each shell is started at a terminal, and told to complete. */
const terminals = {
  bash: { command: "bash --norc --noprofile -i", ready: "source script.bash" },
  zsh: { command: "zsh -f -i", ready: "autoload -Uz compinit; compinit -u -d dump; source script.zsh" },
} as const;

/** What is typed, with tabs, and the arguments that the command then gets. */
const typed: readonly (readonly [keys: string, got: readonly string[]])[] = [
  ["gateway evide\tprun\t --he\t", ["evidence", "prune", "--help"]],
  ["gateway keys new --ro\tvie\t", ["keys", "new", "--role", "viewer"]],
  ["gateway evidence report some --format=ht\t", ["evidence", "report", "some", "--format=html"]],
  ["gateway keys new --role viewer --ten\t", ["keys", "new", "--role", "viewer", "--tenant"]],
  ["gateway help back\t", ["help", "backup"]],
  ["gateway config check we\t", ["config", "check", hostile]],
  ["gateway config check '$(touch pwned)' we\t", ["config", "check", "$(touch pwned)", "we"]],
  ["gateway '`touch pwned`' '$(touch pwned)\t'", ["`touch pwned`", "$(touch pwned)"]],
];

describe("completion in the shells themselves", () => {
  let folder: string;

  before(() => {
    folder = mkdtempSync(join(tmpdir(), "completion-"));
    mkdirSync(join(folder, "plans"));
    writeFileSync(join(folder, hostile), "");
    writeFileSync(join(folder, "plain"), "");
    writeFileSync(join(folder, "gateway"), "#!/bin/sh\nprintf '%s\\0' \"$@\" > said\n");
    chmodSync(join(folder, "gateway"), 0o755);
    for (const shell of ["bash", "zsh", "fish"])
      writeFileSync(join(folder, `script.${shell}`), execFileSync(process.execPath, [program, "completion", shell]));
  });

  after(() => rmSync(folder, { recursive: true }));

  for (const shell of ["bash", "zsh"] as const) {
    describe(shell, () => {
      for (const [keys, got] of typed) {
        it(`completes ${JSON.stringify(keys)}, and runs nothing of it`, () => {
          expect(type(shell, keys)).to.deep.equal(got);
          expect(readdirSync(folder)).to.not.include("pwned");
        });
      }

      it("offers folders alone where a folder is asked for", () => {
        expect(type(shell, "gateway serve --data pla\t").map((word) => word.replace(/\/$/, ""))).to.deep.equal([
          "serve",
          "--data",
          "plans",
        ]);
      });

      it("completes nothing without its script", () => {
        expect(type(shell, "gateway keys new --ro\t", ":")).to.not.include("--role");
      });
    });
  }

  it("keeps what commands say of themselves text, whatever is in it", () => {
    const told = "it's \"$(touch pwned)\" `touch pwned` \\' ; touch pwned: $HOME";
    const holder = new Command("gateway").addCommand(new Command("odd").description(told).option("--odd", told));
    const shape = shapeOf(holder);
    const scripts = { bash: bashScript(shape), zsh: zshScript(shape), fish: fishScript(shape) };
    for (const [shell, text] of Object.entries(scripts)) writeFileSync(join(folder, `odd.${shell}`), text);
    const zsh = "autoload -Uz compinit; compinit -u -d dump; source odd.zsh";
    expect(type("bash", "gateway o\t --o\t", "source odd.bash")).to.deep.equal(["odd", "--odd"]);
    expect(type("zsh", "gateway o\t --o\t", zsh)).to.deep.equal(["odd", "--odd"]);
    expect(offered("gateway o", "odd.fish")).to.deep.equal([`odd\t${told}`]);
    expect(readdirSync(folder)).to.not.include("pwned");
  });

  it("is not made of names that a shell could read as anything but a word", () => {
    const named = (name: string): Command => new Command("gateway").addCommand(new Command(name));
    for (const name of ["$(touch pwned)", "a b", "a;b", "a'b", "*", "@file"])
      expect(() => shapeOf(named(name)), name).to.throw("no shell reads as anything else");
    const choosing = new Command("gateway").addOption(new Option("--as <what>").choices(["good", "`bad`"]));
    expect(() => shapeOf(choosing)).to.throw("`bad`");
    expect(shapeOf(named("good")).commands[0]?.path).to.equal("gateway good");
  });

  describe("fish", () => {
    it("offers every command and option, each with what it does", () => {
      expect(offered("gateway ")).to.deep.equal(
        [
          ...buildProgram().commands.map((command) => `${command.name()}\t${command.description()}`),
          "help\tdisplay help for command",
        ].toSorted(),
      );
      expect(offered("gateway evide")).to.deep.equal(["evidence\tVerify, export and manage evidence"]);
      expect(offered("gateway keys new --ro")).to.deep.equal(["--role\trole of the key"]);
    });

    it("offers the words, files and folders that a place takes", () => {
      expect(offered("gateway keys new --role ")).to.deep.equal(["admin", "operator", "viewer"]);
      expect(offered("gateway help back")).to.deep.equal(["backup"]);
      expect(offered("gateway config check we")).to.deep.equal([hostile]);
      expect(offered("gateway serve --data pla")).to.deep.equal(["plans/\tDirectory"]);
      expect(offered("gateway approvals show ")).to.deep.equal([]);
    });

    it("runs nothing of what is typed", () => {
      expect(offered("gateway '$(touch pwned)' \"$(touch pwned)\" ne")).to.deep.equal([]);
      expect(offered("gateway keys (touch pwned) ne")).to.deep.equal([]);
      expect(readdirSync(folder)).to.not.include("pwned");
    });
  });

  /** Types at a real terminal, and answers with what the command was then called with. */
  function type(
    shell: keyof typeof terminals,
    keys: string,
    ready: string = terminals[shell].ready,
  ): readonly string[] {
    const said = join(folder, "said");
    rmSync(said, { force: true });
    execFileSync("script", ["-qec", terminals[shell].command, "/dev/null"], {
      cwd: folder,
      input: `${ready}\n${keys}\nexit 0\n`,
      env: { ...process.env, PATH: `${folder}${delimiter}${process.env.PATH}`, TERM: "dumb" },
      timeout: 20_000,
    });
    return readFileSync(said, "utf8").split("\0").slice(0, -1);
  }

  function offered(line: string, script: string = "script.fish"): readonly string[] {
    const asked = ["--no-config", "-c", "source $argv[1]; complete -C $argv[2]", script, line];
    const text = execFileSync("fish", asked, { cwd: folder, env: { ...process.env, HOME: folder }, encoding: "utf8" });
    return text.split("\n").slice(0, -1).toSorted();
  }
});
