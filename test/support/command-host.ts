import { type ChildProcess, fork } from "node:child_process";
import { fileURLToPath } from "node:url";
import type { Finished } from "../unit/cli/run.ts";
import { nodeFlags } from "./node-flags.ts";

const program = fileURLToPath(new URL("../fixture/command-host.js", import.meta.url));

/** Processes whose hosts have stopped. */
const idle: ChildProcess[] = [];

/**
 * A process that runs many command lines, where starting one for each would cost more than what they do. What only a process
 * of its own shows, such as that it ends, a test runs with `runGateway`.
 */
export class CommandHost {
  readonly #child: ChildProcess = idle.pop() ?? startProcess();
  #last: Promise<unknown> = Promise.resolve();

  /** Runs `gateway <args>` in a folder with exactly this environment, to its end, once those before have ended. */
  run(args: readonly string[], env: Readonly<Record<string, string>> = {}, cwd = process.cwd()): Promise<Finished> {
    const finished = this.#last.then(() => this.#ask({ args, env, cwd }));
    this.#last = finished.catch(() => undefined);
    return finished;
  }

  /** Leaves its process to another host, once what was asked has ended. */
  async stop(): Promise<void> {
    await this.#last;
    if (this.#child.connected) idle.push(this.#child);
  }

  async #ask(line: object): Promise<Finished> {
    this.#child.ref();
    this.#child.channel?.ref();
    const [message] = await new Promise<readonly unknown[]>((resolve, reject) => {
      const ended = (): void => reject(new Error("expected an answer, got the end of the process"));
      this.#child.once("exit", ended);
      this.#child.once("message", (answer) => {
        this.#child.off("exit", ended);
        resolve([answer]);
      });
      this.#child.send(line);
    });
    rest(this.#child);
    return message as Finished;
  }
}

function startProcess(): ChildProcess {
  const child = fork(program, { execArgv: [...nodeFlags], stdio: ["ignore", "inherit", "inherit", "ipc"] });
  rest(child);
  return child;
}

/** Between commands a process keeps nobody from ending. */
function rest(child: ChildProcess): void {
  child.unref();
  child.channel?.unref();
}

let shared: CommandHost | undefined;

/** Runs `gateway <args>` with exactly this environment, to its end, in a host that all files of this process share. */
export function runCommand(args: readonly string[], env: Readonly<Record<string, string>> = {}): Promise<Finished> {
  shared ??= new CommandHost();
  return shared.run(args, env);
}
