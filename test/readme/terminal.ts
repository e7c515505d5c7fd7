import { type ChildProcessByStdio, spawn } from "node:child_process";
import { randomUUID } from "node:crypto";
import { once } from "node:events";
import type { Readable, Writable } from "node:stream";

/** A shell that stays open: what one block of commands defines, the next one can use. */
export class Terminal {
  readonly #shell: ChildProcessByStdio<Writable, Readable, null>;
  #output = "";

  constructor(folder: string, env: NodeJS.ProcessEnv) {
    this.#shell = spawn("bash", ["--norc"], { cwd: folder, env, stdio: ["pipe", "pipe", "ignore"] });
    this.#shell.stdout.setEncoding("utf8").on("data", (text: string) => {
      this.#output += text;
    });
    // Job control gives each started program a process group of its own, so that Ctrl-C means only that one.
    this.#shell.stdin.write("set -m\nexec 2>&1\nLOG=$(mktemp)\n");
  }

  /** Runs commands to their end; resolves with what they printed. Rejects unless the last one ends with 0. */
  async run(commands: string, deadlineMs: number): Promise<string> {
    const mark = randomUUID();
    this.#output = "";
    this.#shell.stdin.write(`${commands}\nprintf '\\n%s %s\\n' ${mark} $?\n`);
    const end = await this.#await(new RegExp(`^${mark} (\\d+)\\n`, "m"), deadlineMs);
    const printed = this.#output.slice(0, end.index);
    if (end[1] !== "0") throw new Error(`expected exit code 0, got ${end[1]}:\n${printed}`);
    return printed;
  }

  /** Runs commands in the background; resolves once they print `ready`. Rejects, with what they printed, if they do not. */
  async start(commands: string, ready: string, deadlineMs: number): Promise<void> {
    const waiting = `for _ in $(seq ${Math.floor(deadlineMs / 100)}); do grep -qF '${ready}' "$LOG" && break; sleep 0.1; done`;
    const began = `{ ${commands}\n} < /dev/null > "$LOG" 2>&1 &\n`;
    await this.run(`${began}${waiting}; cat "$LOG"; grep -qF '${ready}' "$LOG"`, deadlineMs + 10_000);
  }

  /** Ctrl-C for what was started last; resolves with all it printed, once it is gone. */
  interrupt(deadlineMs: number): Promise<string> {
    return this.run('kill -INT -- -$!; wait $!; cat "$LOG"', deadlineMs);
  }

  /** Ends the shell and all it started. */
  async close(): Promise<void> {
    const closed = once(this.#shell, "close");
    this.#shell.stdin.end("for job in $(jobs -p); do kill -KILL -- -$job; done; rm $LOG; exit 0\n");
    await closed;
  }

  async #await(pattern: RegExp, deadlineMs: number): Promise<RegExpExecArray> {
    const signal = AbortSignal.timeout(deadlineMs);
    for (;;) {
      const found = pattern.exec(this.#output);
      if (found !== null) return found;
      try {
        await once(this.#shell.stdout, "data", { signal });
      } catch (cause) {
        throw new Error(`expected ${pattern} within ${deadlineMs} ms, got:\n${this.#output}`, { cause });
      }
    }
  }
}
