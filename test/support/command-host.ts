import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import type { Finished } from "../unit/cli/run.ts";
import { nodeFlags } from "./node-flags.ts";

const program = fileURLToPath(new URL("../fixture/command-host.js", import.meta.url));

/**
 * A process that runs many command lines, where starting one for each would cost more than what they do. What only a process
 * of its own shows, such as that it ends, a test runs with `runGateway`.
 */
export class CommandHost {
  readonly #child: ChildProcess = fork(program, {
    execArgv: [...nodeFlags],
    stdio: ["ignore", "inherit", "inherit", "ipc"],
  });
  #last: Promise<unknown> = Promise.resolve();

  constructor() {
    this.#rest();
  }

  /** Runs `gateway <args>` in a folder with exactly this environment, to its end, once those before have ended. */
  run(args: readonly string[], env: Readonly<Record<string, string>> = {}, cwd = process.cwd()): Promise<Finished> {
    const finished = this.#last.then(() => this.#ask({ args, env, cwd }));
    this.#last = finished.catch(() => undefined);
    return finished;
  }

  async stop(): Promise<void> {
    const ended = once(this.#child, "exit");
    this.#child.ref();
    this.#child.disconnect();
    await ended;
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
    this.#rest();
    return message as Finished;
  }

  /** Between commands it keeps nobody from ending. */
  #rest(): void {
    this.#child.unref();
    this.#child.channel?.unref();
  }
}

let shared: CommandHost | undefined;

/** Runs `gateway <args>` with exactly this environment, to its end, in a host that all files of this process share. */
export function runCommand(args: readonly string[], env: Readonly<Record<string, string>> = {}): Promise<Finished> {
  shared ??= new CommandHost();
  return shared.run(args, env);
}
