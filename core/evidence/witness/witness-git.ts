import { spawn } from "node:child_process";
import { withInheritedMask } from "../../store/private-file.ts";
import { checkLog, maxNote, type Witness } from "./witness.ts";

const branch = "refs/heads/evidence";
const author = "Agent Governance Gateway <gateway@localhost>";
const deadlineMs = 10_000;

interface Finished {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

/**
 * A git repository, bare or with a work tree: branch `evidence`, a file `<log>.note` for each log, a commit for each
 * note. Touches no work tree. Runs `git` without a shell; 10 s each.
 */
export class GitWitness implements Witness {
  readonly name: string;
  readonly #repository: string;

  constructor(name: string, repository: string) {
    this.name = name;
    this.#repository = repository;
  }

  async append(log: string, note: string, time: string): Promise<void> {
    checkLog(log);
    const from = (await this.#exists(branch)) ? `from ${branch}^0\n` : "";
    const seconds = Math.floor(Date.parse(time) / 1_000);
    const stream =
      `commit ${branch}\ncommitter ${author} ${seconds} +0000\n${data(`Checkpoint of ${log}\n`)}` +
      `${from}M 100644 inline ${log}.note\n${data(note)}`;
    const finished = await this.#git(["-c", "core.fsync=all", "fast-import", "--quiet", "--done"], `${stream}done\n`);
    if (finished.code !== 0) throw gitFault(finished);
  }

  async latest(log: string): Promise<string | undefined> {
    checkLog(log);
    const object = `${branch}:${log}.note`;
    if (!(await this.#exists(object))) return undefined;
    const finished = await this.#git(["cat-file", "blob", object], "");
    if (finished.code !== 0) throw gitFault(finished);
    return finished.stdout;
  }

  /** Rejects where that cannot be said: a repository that is not there is not one without notes. */
  async #exists(object: string): Promise<boolean> {
    const finished = await this.#git(["rev-parse", "--verify", "--quiet", object], "");
    if (finished.code === 0 || finished.code === 1) return finished.code === 0;
    throw gitFault(finished);
  }

  #git(args: readonly string[], input: string): Promise<Finished> {
    // Only what finds the program: a GIT_DIR of the environment would name another repository.
    const env = { PATH: process.env.PATH ?? "", LC_ALL: "C", GIT_TERMINAL_PROMPT: "0" };
    const options = { env, timeout: deadlineMs, killSignal: "SIGKILL" } as const;
    // Who may read the repository is for its own configuration to say.
    const child = withInheritedMask(() => spawn("git", ["-C", this.#repository, ...args], options));
    return new Promise((resolve, reject) => {
      const out = { stdout: "", stderr: "" };
      for (const name of ["stdout", "stderr"] as const) {
        child[name].setEncoding("utf8").on("data", (text: string) => {
          out[name] = (out[name] + text).slice(0, maxNote);
        });
      }
      child.once("error", reject);
      child.once("close", (code) => resolve({ code, ...out }));
      child.stdin.on("error", () => undefined); // git that ends early says why on stderr
      child.stdin.end(input);
    });
  }
}

function data(text: string): string {
  return `data ${Buffer.byteLength(text)}\n${text}\n`;
}

/** Says git's reason; where a mount point lies above the folder, advice follows it. */
function gitFault({ code, stderr }: Finished): Error {
  const lines = stderr.trim().split("\n");
  const reason = lines.findLast((line) => /^(?:fatal|error): /.test(line)) ?? lines.at(-1) ?? "";
  return new Error(`expected git to end with 0, got ${code ?? "a signal"}: ${reason}`);
}
