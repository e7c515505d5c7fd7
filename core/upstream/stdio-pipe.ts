import { type ChildProcessWithoutNullStreams, spawn } from "node:child_process";
import { GatewayError } from "../action/error.ts";
import type { Clock } from "../action/id.ts";
import { JoinedBytes } from "../action/joined-bytes.ts";
import { longText } from "../action/strict-json.ts";
import type { StdioConfig } from "../config/gateway-config.ts";
import { withInheritedMask } from "../store/private-file.ts";
import type { Pipe, PipeListener } from "./duplex-transport.ts";
import type { ReplyBounds } from "./transport.ts";

/** The bytes that a process may leave unread in its standard input. */
const maxUnreadBytes = 8 * 1024 * 1024;
/** The most that a process's exit, the end of its output and the break of its pipes lie apart. */
const endMs = 200;
const openBrace = 0x7b;
const openBracket = 0x5b;

/** Newline-delimited JSON with a child process. Its other output is logged, line by line. */
export class StdioPipe implements Pipe {
  readonly #child: ChildProcessWithoutNullStreams;
  readonly #log: LogLines;
  readonly #framer: LineFramer;
  readonly #command: string;
  #listener!: PipeListener;
  #hasMessages = false;
  #isPaused = false;
  #isEnded = false;

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
      if (!this.#isEnded) this.#framer.push(chunk);
    });
    stderr.on("data", (chunk: Buffer) => this.#log.push(chunk));
    stderr.once("end", () => this.#log.flush());
    for (const stream of [stdin, stdout, stderr]) {
      stream.on("error", (error) => {
        // Most often because it is exiting: how it exits says more.
        setTimeout(() => {
          const hasExited = this.#child.exitCode !== null || this.#child.signalCode !== null;
          if (!hasExited) this.#fail("UPSTREAM_UNAVAILABLE", `the process's pipe broke: ${error.message}`);
        }, endMs).unref();
      });
    }
    this.#child.once("error", (error: NodeJS.ErrnoException) => {
      this.#fail("UPSTREAM_UNAVAILABLE", `cannot start \`${this.#command}\`: ${error.code ?? error.message}`);
    });
    this.#child.once("exit", (code, signal) => {
      const end = (): void =>
        this.#fail("UPSTREAM_UNAVAILABLE", `the process ended (${signal ?? `exit code ${code}`})`);
      // `close` is emitted when its output is read whole, unless something outside its group holds the pipe.
      this.#child.once("close", end);
      const endSoon = (): void => {
        setTimeout(() => (this.#isPaused ? endSoon() : end()), endMs).unref();
      };
      endSoon();
    });
  }

  write(text: string, done: (fault?: GatewayError) => void): void {
    const { stdin } = this.#child;
    if (this.#isEnded || !stdin.writable) {
      done(new GatewayError("UPSTREAM_UNAVAILABLE", "the process has ended"));
    } else if (stdin.writableLength > maxUnreadBytes) {
      done(new GatewayError("UPSTREAM_BUSY", `the process left ${maxUnreadBytes} bytes of its input unread`));
    } else {
      stdin.write(`${text}\n`);
      done();
    }
  }

  pause(): void {
    this.#isPaused = true;
    this.#child.stdout.pause();
  }

  resume(): void {
    this.#isPaused = false;
    if (!this.#isEnded) this.#child.stdout.resume();
  }

  async close(): Promise<void> {
    this.#isEnded = true;
    await this.#stop();
  }

  /** Logs a banner before the first message; after that every line must be a message. */
  #onLine(line: Buffer | JoinedBytes): void {
    const start = line instanceof JoinedBytes ? (line.pieces[0] as Buffer) : line;
    const first = start[0];
    if (!this.#hasMessages && first !== openBrace && first !== openBracket) {
      this.#log.write(start.subarray(0, 2_048).toString("utf8"));
      return;
    }
    this.#hasMessages = true;
    this.#listener.onMessage(line);
  }

  #fail(code: "UPSTREAM_UNAVAILABLE" | "UPSTREAM_INVALID", detail: string): void {
    if (this.#isEnded) return;
    this.#isEnded = true;
    this.#listener.onEnd(new GatewayError(code, detail));
    void this.#stop();
  }

  /** Stops reading its output, so that a flood costs nothing while the process ends. */
  async #stop(): Promise<void> {
    const { stdout } = this.#child;
    stdout.pause();
    await stopProcess(this.#child);
    stdout.destroy();
  }
}

const endGraceMs = 300;
const termGraceMs = 2_000;
const inherited = ["PATH", "LANG"] as const;
/** Folders of the gateway's own user. */
const inheritedFolders = ["HOME", "TMPDIR"] as const;

/** Process groups that are alive; they are killed when the gateway exits. */
const groups: Set<number> = new Set();
process.on("exit", () => {
  for (const group of groups) signalGroup(group, "SIGKILL");
});

/**
 * Starts an upstream's process: no shell, its own process group, and an environment of PATH, LANG, HOME and TMPDIR of its
 * own user, and the configured variables, so that the gateway's own secrets cannot leak. With `runAs` it has that user and
 * that group, and no other: libuv gives up the supplementary groups of a process whose user it changes. A failed start is an
 * `error` event, also where the user cannot be changed.
 */
function startProcess(config: StdioConfig): ChildProcessWithoutNullStreams {
  const start = (): ChildProcessWithoutNullStreams =>
    spawn(config.command, config.args, {
      ...(config.cwd === undefined ? {} : { cwd: config.cwd }),
      ...config.runAs,
      env: { ...minimalEnvironment(config.runAs !== undefined), ...config.env },
      detached: true,
      shell: false,
      stdio: ["pipe", "pipe", "pipe"],
    });
  const child = withInheritedMask(start);
  const { pid } = child;
  if (pid === undefined) return child;
  groups.add(pid);
  child.once("exit", () => {
    signalGroup(pid, "SIGKILL"); // its orphaned children
    groups.delete(pid);
  });
  return child;
}

/** Ends the process and its group: end of input, then SIGTERM, then SIGKILL. Resolves when it is gone. */
async function stopProcess(child: ChildProcessWithoutNullStreams): Promise<void> {
  const { pid } = child;
  if (pid === undefined || child.exitCode !== null || child.signalCode !== null) return;
  const exited = new Promise<true>((resolve) => child.once("exit", () => resolve(true)));
  child.stdin.end();
  if (await within(exited, endGraceMs)) return;
  signalGroup(pid, "SIGTERM");
  if (await within(exited, termGraceMs)) return;
  signalGroup(pid, "SIGKILL");
  await exited;
}

function minimalEnvironment(isOtherUser: boolean): Record<string, string> {
  const env: Record<string, string> = {};
  for (const name of isOtherUser ? inherited : [...inherited, ...inheritedFolders]) {
    const value = process.env[name];
    if (value !== undefined) env[name] = value;
  }
  return env;
}

function signalGroup(group: number, signal: NodeJS.Signals): void {
  try {
    process.kill(-group, signal);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    // Already gone is the goal; a process that runs as another user by now cannot be ended, which must not end the gateway.
    if (code !== "ESRCH" && code !== "EPERM") throw error;
  }
}

async function within(event: Promise<true>, ms: number): Promise<boolean> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<false>((resolve) => {
    timer = setTimeout(() => resolve(false), ms);
  });
  const first = await Promise.race([event, late]);
  clearTimeout(timer);
  return first;
}

const maxLine = 2_048;
const linesPerSecond = 50;

/**
 * Turns a process's standard error into log lines: the first 2,048 bytes of each, 50 a second at most.
 * Lines beyond that are counted, and the count is logged.
 */
export class LogLines {
  readonly #clock: Clock;
  readonly #sink: (line: string) => void;
  #parts: Buffer[] = [];
  #size = 0;
  #second = 0;
  #sent = 0;
  #dropped = 0;

  constructor(clock: Clock, sink: (line: string) => void) {
    this.#clock = clock;
    this.#sink = sink;
  }

  push(chunk: Buffer): void {
    let start = 0;
    for (let end = chunk.indexOf(0x0a); end !== -1; end = chunk.indexOf(0x0a, start)) {
      this.#keep(chunk.subarray(start, end));
      this.flush();
      start = end + 1;
    }
    this.#keep(chunk.subarray(start));
  }

  /** Writes an unfinished line. */
  flush(): void {
    if (this.#size === 0) return;
    const text = Buffer.concat(this.#parts).toString("utf8").trimEnd();
    this.#parts = [];
    this.#size = 0;
    if (text !== "") this.write(text);
  }

  /** Writes a line from another source, under the same limits. */
  write(line: string): void {
    const second = Math.floor(this.#clock() / 1_000);
    if (second !== this.#second) {
      this.#second = second;
      this.#sent = 0;
      if (this.#dropped > 0) this.#sink(`(${this.#dropped} lines dropped)`);
      this.#dropped = 0;
    }
    if (++this.#sent <= linesPerSecond) this.#sink(line.slice(0, maxLine));
    else this.#dropped++;
  }

  #keep(part: Buffer): void {
    const room = maxLine - this.#size;
    if (room <= 0 || part.length === 0) return;
    const kept = Buffer.from(part.subarray(0, room));
    this.#parts.push(kept);
    this.#size += kept.length;
  }
}

const newline = 0x0a;
const carriageReturn = 0x0d;
const edge = 256;

interface LineListener {
  /**
   * One line without its line end, but for the carriage return of a long one, which is white space in JSON; never empty. The listener may
   * keep the bytes.
   */
  onLine(line: Buffer | JoinedBytes): void;
  /** A line longer than the bound has ended; `head` and `tail` are its first and last bytes, at most 256 each. */
  onLongLine(head: Buffer, tail: Buffer): void;
  /** A line exceeded even the length that is skipped. The framer must not be used after that. */
  onEndlessLine(): void;
}

/**
 * Splits a byte stream into lines. Keeps at most `maxBytes` of one; a longer line is skipped to its end, up to
 * eight times as much.
 */
export class LineFramer {
  readonly #maxBytes: number;
  readonly #listener: LineListener;
  #line: JoinedBytes = new JoinedBytes(0);
  #size = 0;
  #head: Buffer = Buffer.alloc(0);
  #tail: Buffer = Buffer.alloc(0);
  #isEnded = false;

  constructor(maxBytes: number, listener: LineListener) {
    this.#maxBytes = maxBytes;
    this.#listener = listener;
  }

  push(chunk: Buffer): void {
    let start = 0;
    for (let end = chunk.indexOf(newline); end !== -1; end = chunk.indexOf(newline, start)) {
      this.#add(chunk.subarray(start, end));
      this.#finish();
      start = end + 1;
      if (this.#isEnded) return;
    }
    if (start < chunk.length) this.#add(chunk.subarray(start));
  }

  #add(part: Buffer): void {
    this.#size += part.length;
    if (this.#size <= this.#maxBytes) {
      this.#line.add(part);
      return;
    }
    this.#skip(part);
    if (this.#size > this.#maxBytes * 8 && !this.#isEnded) {
      this.#isEnded = true;
      this.#listener.onEndlessLine();
    }
  }

  #skip(part: Buffer): void {
    if (this.#head.length === 0) {
      const [head, tail] = this.#line.ends(edge);
      this.#head = Buffer.concat([head, part.subarray(0, edge)]).subarray(0, edge);
      this.#tail = tail;
      this.#line = new JoinedBytes(0);
    }
    this.#tail = Buffer.from(Buffer.concat([this.#tail, part.subarray(-edge)]).subarray(-edge));
  }

  #finish(): void {
    const long = this.#size > this.#maxBytes;
    const line = this.#line.length < longText ? withoutReturn(this.#line.bytes) : this.#line;
    const [head, tail] = [this.#head, this.#tail];
    this.#line = new JoinedBytes(0);
    this.#size = 0;
    this.#head = this.#tail = Buffer.alloc(0);
    if (this.#isEnded) return;
    if (long) this.#listener.onLongLine(head, tail);
    else if (line.length > 0) this.#listener.onLine(line);
  }
}

function withoutReturn(line: Buffer): Buffer {
  return line.at(-1) === carriageReturn ? line.subarray(0, -1) : line;
}
