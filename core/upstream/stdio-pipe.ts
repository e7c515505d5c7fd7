import type { ChildProcessWithoutNullStreams } from "node:child_process";
import { GatewayError } from "../kernel/error.ts";
import type { Clock } from "../kernel/port.ts";
import type { StdioConfig } from "../kernel/upstream-config.ts";
import { startProcess, stopProcess } from "./child-process.ts";
import type { Pipe, PipeListener } from "./duplex-transport.ts";
import { LineFramer } from "./line-framer.ts";
import { LogLines } from "./log-line.ts";
import type { ReplyBounds } from "./reply.ts";

/** What a process may leave unread in its standard input. */
const unreadBytes = 8 * 1024 * 1024;
/** How long after its end a process's last words are waited for. */
const lastWordsMs = 200;
const openBrace = 0x7b;
const openBracket = 0x5b;

/** Newline-delimited JSON with a child process. Everything it prints that is no message is a log line. */
export class StdioPipe implements Pipe {
  readonly #child: ChildProcessWithoutNullStreams;
  readonly #log: LogLines;
  readonly #framer: LineFramer;
  readonly #command: string;
  #listener!: PipeListener;
  #heard = false;
  #ended = false;

  constructor(config: StdioConfig, bounds: ReplyBounds, clock: Clock, onLog: (line: string) => void) {
    this.#command = config.command;
    this.#log = new LogLines(clock, onLog);
    this.#framer = new LineFramer(bounds.bytes, {
      onLine: (line) => this.#onLine(line),
      onLongLine: (head, tail) => this.#listener.onLongMessage(head, tail),
      onEndlessLine: () =>
        this.#fail("UPSTREAM_INVALID", "expected a line end on standard output, got an endless line"),
    });
    this.#child = startProcess(config);
  }

  listen(listener: PipeListener): void {
    this.#listener = listener;
    const { stdin, stdout, stderr } = this.#child;
    stdout.on("data", (chunk: Buffer) => {
      if (!this.#ended) this.#framer.push(chunk);
    });
    stderr.on("data", (chunk: Buffer) => this.#log.push(chunk));
    stderr.once("end", () => this.#log.flush());
    for (const stream of [stdin, stdout, stderr]) {
      stream.on("error", (error) => this.#fail("UPSTREAM_UNAVAILABLE", `the process's pipe broke: ${error.message}`));
    }
    this.#child.once("error", (error: NodeJS.ErrnoException) => {
      this.#fail("UPSTREAM_UNAVAILABLE", `cannot start \`${this.#command}\`: ${error.code ?? error.message}`);
    });
    this.#child.once("exit", (code, signal) => {
      const end = (): void =>
        this.#fail("UPSTREAM_UNAVAILABLE", `the process ended (${signal ?? `exit code ${code}`})`);
      // `close` comes when its last words are read, unless something outside its group holds the pipe.
      this.#child.once("close", end);
      setTimeout(end, lastWordsMs).unref();
    });
  }

  write(text: string, done: (fault?: GatewayError) => void): void {
    const { stdin } = this.#child;
    if (this.#ended || !stdin.writable) {
      done(new GatewayError("UPSTREAM_UNAVAILABLE", "the process has ended"));
    } else if (stdin.writableLength > unreadBytes) {
      done(new GatewayError("UPSTREAM_BUSY", `the process left ${unreadBytes} bytes of its input unread`));
    } else {
      stdin.write(`${text}\n`);
      done();
    }
  }

  async close(): Promise<void> {
    this.#ended = true;
    await this.#stop();
  }

  /** A banner before the first message is a bad habit, not an answer; after it, nonsense is nonsense. */
  #onLine(line: Buffer): void {
    const first = line[0];
    if (!this.#heard && first !== openBrace && first !== openBracket) {
      this.#log.write(line.subarray(0, 2_048).toString("utf8"));
      return;
    }
    this.#heard = true;
    this.#listener.onMessage(line);
  }

  #fail(code: "UPSTREAM_UNAVAILABLE" | "UPSTREAM_INVALID", detail: string): void {
    if (this.#ended) return;
    this.#ended = true;
    this.#listener.onEnd(new GatewayError(code, detail));
    void this.#stop();
  }

  /** What it says from here on is nobody's: it is left unread, or a flood would go on costing until the process is gone. */
  async #stop(): Promise<void> {
    const { stdout } = this.#child;
    stdout.pause();
    await stopProcess(this.#child);
    stdout.destroy();
  }
}
