import { execFile } from "node:child_process";
import { chmod, mkdir, mkdtemp, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect } from "chai";
import { repositoryRoot } from "../check/source-tree.ts";
import { CommandHost } from "../support/command-host.ts";
import { nodeFlags } from "../support/node-flags.ts";
import { isAsShown } from "../support/shown-output.ts";
import type { Finished } from "../unit/cli/run.ts";
import type { Step } from "./transcript.ts";

/** A line that is one command of the gateway, and no more of the shell's; `serve` ends by a signal, which takes a process. */
const plainCommand =
  /^(?:[A-Z_]+=\S* )*gateway (?!serve\b)(?<command>[a-z-]+(?: [a-z][a-z-]*\b(?![./]))?)[^|<>;&`()\n]*$/;
/** In place of the gateway: says what it would have been given, each text ended by a NUL: how many arguments, they, and the environment. */
const saying = `gateway() { printf '%s\\0' "$#" "$@"; env -0; }\n`;
const program = fileURLToPath(new URL("../../core/cli/main.js", import.meta.url));

/**
 * A folder in which the steps of a transcript run, with `gateway` on the path and the shipped packs and plugins beside it. What a step
 * writes to `$BASH_ENV` is in force in every later one.
 */
export class TranscriptFolder {
  readonly path: string;
  readonly #host = new CommandHost();
  /** The commands that a process of its own has run. */
  readonly #shown = new Set<string>();

  private constructor(path: string) {
    this.path = path;
  }

  /** `profile` is in force in every step. */
  static async make(profile = ""): Promise<TranscriptFolder> {
    const folder = new TranscriptFolder(await mkdtemp(join(tmpdir(), "transcript-")));
    for (const shipped of ["policy-packs", "plugins"])
      await symlink(join(repositoryRoot, shipped), join(folder.path, shipped));
    await mkdir(join(folder.path, "bin"));
    await writeFile(
      folder.#gateway,
      `#!/bin/sh\nexec "${process.execPath}" ${nodeFlags.join(" ")} "${program}" "$@"\n`,
    );
    await writeFile(folder.#profile, profile);
    await chmod(folder.#gateway, 0o755);
    return folder;
  }

  get #gateway(): string {
    return join(this.path, "bin", "gateway");
  }

  get #profile(): string {
    return join(this.path, "bin", "profile");
  }

  /** Runs a step, and throws where it does not print and return what it shows. */
  async expectAsShown(step: Step, env: Readonly<Record<string, string>>): Promise<void> {
    const finished = await this.#run(step.command, env);
    const readable = (text: string): string => text.replaceAll(this.path, "FOLDER");
    const { command } = step;
    const actual = {
      command,
      stdout: readable(finished.stdout),
      stderr: readable(finished.stderr),
      code: finished.code,
    };
    const same =
      step.code === actual.code && isAsShown(step.stdout, actual.stdout) && isAsShown(step.stderr, actual.stderr);
    if (!same) expect(actual).to.deep.equal(step);
    if (/ --json\b[^|<>;&]*$/.test(step.command)) expectJson(actual);
  }

  async remove(): Promise<void> {
    await this.#host.stop();
    await rm(this.path, { recursive: true });
  }

  /**
   * Runs the first line of each command, and all that need the shell, as processes of their own; others in one that has loaded
   * the program, with the arguments and the environment that the shell makes of them.
   */
  async #run(command: string, env: Readonly<Record<string, string>>): Promise<Finished> {
    const name = plainCommand.exec(command)?.groups?.command;
    if (name === undefined || !this.#shown.has(name)) {
      if (name !== undefined) this.#shown.add(name);
      return this.#runShell(command, env);
    }
    const said = (await this.#runShell(saying + command, env)).stdout.split("\0");
    const count = Number(said[0]);
    const variables = said.slice(count + 1, -1).map((each) => /^([^=]*)=(.*)$/s.exec(each)?.slice(1) ?? []);
    return this.#host.run(said.slice(1, count + 1), Object.fromEntries(variables), this.path);
  }

  #runShell(command: string, more: Readonly<Record<string, string>>): Promise<Finished> {
    const path = `${join(this.path, "bin")}${delimiter}${process.env.PATH}`;
    const options = { cwd: this.path, env: { PATH: path, BASH_ENV: this.#profile, ...more }, timeout: 90_000 };
    return new Promise((resolve, reject) => {
      const child = execFile("bash", ["--norc", "-c", command], options, (_error, stdout, stderr) => {
        if (child.exitCode === null) reject(new Error(`expected an exit code, got the signal ${child.signalCode}`));
        else resolve({ stdout, stderr, code: child.exitCode });
      });
    });
  }
}

/** What a command is to print with `--json`: objects, a line each; where it has none to tell, and fails, its error is one. */
function expectJson({ stdout, stderr, code }: Step): void {
  const lines = stdout.split("\n").filter((line) => line !== "");
  for (const line of lines) expect(JSON.parse(line), line).to.be.an("object");
  if (lines.length > 0 || code === 0) return;
  const { error } = JSON.parse(stderr.trimEnd().split("\n").at(-1) ?? "");
  expect(error.code).to.match(/^[A-Z][A-Z_]+$/);
  expect(error.message).to.be.a("string");
}
