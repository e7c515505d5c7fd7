import { execFile } from "node:child_process";
import { chmod, mkdir, mkdtemp, rm, symlink, writeFile } from "node:fs/promises";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";
import { text } from "node:stream/consumers";
import { fileURLToPath } from "node:url";
import { expect } from "chai";
import { repositoryRoot } from "../check/source-tree.ts";
import { CommandHost } from "../support/command-host.ts";
import { nodeFlags } from "../support/node-flags.ts";
import { isAsShown } from "../support/shown-output.ts";
import type { Finished } from "../unit/cli/run.ts";
import type { Step } from "./transcript.ts";

/** What only a process of its own shows: one that ends by a signal, reads standard input, or that another program starts. */
const needsProcess = /\b(?:serve|start|script)\b|(?<![&>])&(?![&>])|(?<!<)<(?!<)|\|\s*gateway\b|\bgateway hook\b/;
const commands = /\bgateway [a-z-]+(?: [a-z][a-z-]*\b(?![./]))?/g;
/**
 * In place of the gateway: gives its arguments, folder and environment to the host behind a socket, which writes what the
 * command prints into a folder, and answers its exit code.
 */
const hosted = (socket: string): string => `() {
  local said=$(mktemp -d "${socket}.XXXXXX") code
  code=$({ printf '%s\\0' "$PWD" "$#" "$@"; env -0; } | curl -sS --unix-socket "${socket}" --data-binary @- "http://host$said")
  cat "$said/stdout" && cat "$said/stderr" >&2 && rm -r "$said" && return "$code"
}`;
const program = fileURLToPath(new URL("../../core/cli/main.js", import.meta.url));

/**
 * A folder in which the steps of a transcript run, with `gateway` on the path and the shipped packs and plugins beside it. What a step
 * writes to `$BASH_ENV` is in force in every later one.
 */
export class TranscriptFolder {
  readonly path: string;
  readonly #host = new CommandHost();
  readonly #server = createServer((request, response) => void this.#answer(request, response));
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
    await new Promise<void>((resolve) => folder.#server.listen(folder.#socket, resolve));
    return folder;
  }

  get #gateway(): string {
    return join(this.path, "bin", "gateway");
  }

  get #profile(): string {
    return join(this.path, "bin", "profile");
  }

  get #socket(): string {
    return join(this.path, "bin", "host");
  }

  /** Runs a step, and throws where it does not print and return what it shows. */
  async expectAsShown(step: Step, env: Readonly<Record<string, string>>): Promise<void> {
    const finished = await this.#run(step.command, env);
    const readable = (printed: string): string => printed.replaceAll(this.path, "FOLDER");
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
    this.#server.close();
    await this.#host.stop();
    await rm(this.path, { recursive: true });
  }

  /**
   * Runs the first line in which a command does its work, and all that need a process, with processes of their own; others
   * with one that has loaded the program.
   */
  #run(command: string, env: Readonly<Record<string, string>>): Promise<Finished> {
    const names = command.match(commands) ?? [];
    const isFirst = !command.includes("--help") && names.some((name) => !this.#shown.has(name));
    if (!isFirst && !needsProcess.test(command)) {
      return this.#runShell(command, { ...env, "BASH_FUNC_gateway%%": hosted(this.#socket) });
    }
    for (const name of names) this.#shown.add(name);
    return this.#runShell(command, env);
  }

  /** Runs what the shell's function asks for. */
  async #answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const [cwd = "", count, ...fields] = (await text(request)).split("\0");
    const args = fields.slice(0, Number(count));
    const variables = fields.slice(Number(count), -1).map((each) => /^([^=]*)=(.*)$/s.exec(each)?.slice(1) ?? []);
    const env = variables.filter(([name = ""]) => !name.startsWith("BASH_FUNC_"));
    const { stdout, stderr, code } = await this.#host.run(args, Object.fromEntries(env), cwd);
    const folder = request.url ?? "";
    await Promise.all([writeFile(join(folder, "stdout"), stdout), writeFile(join(folder, "stderr"), stderr)]);
    response.end(String(code));
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
