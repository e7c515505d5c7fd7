import type { ChildProcess } from "node:child_process";
import { once } from "node:events";
import { setTimeout as sleep } from "node:timers/promises";

/** A child process that has said it is ready. */
export interface ReadyProcess {
  /** The port number that field `name` of the ready line holds. Throws when it holds none. */
  port(name: string): number;
  stdout(): string;
  stderr(): string;
  /**
   * Sends `signal` and waits until the process is gone; its exit code, or 128 when a signal ended it.
   * After `deadlineMs` the process group is killed and this throws.
   */
  stop(signal: NodeJS.Signals, deadlineMs: number): Promise<number>;
}

type Fields = Readonly<Record<string, unknown>>;

const tailLength = 4000;

/**
 * Waits for the JSON line on stdout that has all the members of `expected`.
 * The child must be spawned `detached` with piped stdout and stderr. Throws with the end of its stderr, and no
 * process left, when it exits first or `deadlineMs` passes. `stopped`: where what runs in the process may stop, with an exit
 * code, and leave the process to another.
 */
export async function awaitReady(
  child: ChildProcess,
  expected: Fields,
  deadlineMs: number,
  stopped?: Promise<number>,
): Promise<ReadyProcess> {
  const stdout = collect(child, "stdout");
  const stderr = collect(child, "stderr");
  const exited = exitOf(child);
  if (stopped === undefined) killWithParent(child);
  let stoppedCode: number | undefined;
  void stopped?.then((code) => {
    stoppedCode = code;
  });
  const line = await firstReadyLine(child, stdout.text, expected, exited, deadlineMs).catch(async (error: Error) => {
    if (child.pid !== undefined) await closed(child);
    throw new Error(`${error.message}; stderr ends:\n${stderr.text().slice(-tailLength)}`);
  });
  return {
    port: (name) => portOf(line, name),
    stdout: stdout.text,
    stderr: stderr.text,
    stop: async (signal, stopMs) => {
      // The process may serve another by now.
      if (stoppedCode !== undefined) return stoppedCode;
      const ended = stopped === undefined ? exited : Promise.race([exited, stopped]);
      const code = await stop(child, signal, ended, stopMs, stderr.text);
      if (child.exitCode !== null || child.signalCode !== null) await closed(child);
      else await Promise.all([stdout.finish(), stderr.finish()]);
      return code;
    },
  };
}

interface Output {
  text(): string;
  /** Resolves once nothing more comes that was written already; what comes then is not of this output. */
  finish(): Promise<void>;
}

function collect(child: ChildProcess, name: "stdout" | "stderr"): Output {
  const stream = child[name];
  if (stream === null) throw new TypeError(`awaitReady: expected a piped ${name}`);
  let text = "";
  const add = (chunk: string): void => {
    text += chunk;
  };
  stream.setEncoding("utf8").on("data", add);
  return {
    text: () => text,
    finish: async () => {
      for (let length = -1; length < text.length; await sleep(5)) length = text.length;
      stream.off("data", add);
    },
  };
}

async function exitOf(child: ChildProcess): Promise<number> {
  const [code] = (await once(child, "exit")) as [number | null];
  return code ?? 128;
}

/** Once its output is whole: whatever it started and did not end holds the pipes open until it is killed. */
async function closed(child: ChildProcess): Promise<void> {
  killGroup(child, "SIGKILL");
  if (child.stdout?.closed && child.stderr?.closed) return;
  await once(child, "close");
}

async function firstReadyLine(
  child: ChildProcess,
  stdout: () => string,
  expected: Fields,
  exited: Promise<number>,
  deadlineMs: number,
): Promise<Fields> {
  let timer: NodeJS.Timeout | undefined;
  let look = (): void => undefined;
  const found = new Promise<Fields>((resolve, reject) => {
    timer = setTimeout(() => reject(new Error(`expected a ready line within ${deadlineMs} ms, got none`)), deadlineMs);
    look = () => {
      const line = readyLine(stdout(), expected);
      if (line !== undefined) resolve(line);
    };
    child.stdout?.on("data", look);
    exited.then((code) => reject(new Error(`expected a ready line, got exit code ${code}`)), reject);
  });
  return found.finally(() => {
    clearTimeout(timer);
    child.stdout?.off("data", look);
  });
}

function readyLine(text: string, expected: Fields): Fields | undefined {
  for (const line of text.split("\n").slice(0, -1)) {
    const fields = parseFields(line);
    if (fields && Object.entries(expected).every(([name, value]) => fields[name] === value)) return fields;
  }
  return undefined;
}

/** A line that is not a JSON object is somebody else's output, not a fault. */
function parseFields(line: string): Fields | undefined {
  if (!line.startsWith("{")) return undefined;
  try {
    return JSON.parse(line) as Fields;
  } catch {
    return undefined;
  }
}

function portOf(line: Fields, name: string): number {
  const value = line[name];
  if (typeof value === "number" && value > 0) return value;
  throw new Error(`expected a port in \`${name}\` of the ready line, got ${JSON.stringify(line)}`);
}

async function stop(
  child: ChildProcess,
  signal: NodeJS.Signals,
  exited: Promise<number>,
  deadlineMs: number,
  stderr: () => string,
): Promise<number> {
  if (signal === "SIGKILL") killGroup(child, signal);
  else child.kill(signal);
  let late = false;
  const timer = setTimeout(() => {
    late = true;
    killGroup(child, "SIGKILL");
  }, deadlineMs);
  const code = await exited.finally(() => clearTimeout(timer));
  if (late)
    throw new Error(
      `expected an exit within ${deadlineMs} ms of ${signal}; stderr ends:\n${stderr().slice(-tailLength)}`,
    );
  return code;
}

/** To the whole group, because the gateway's own children (stdio upstreams) must not outlive a test. */
function killGroup(child: ChildProcess, signal: NodeJS.Signals): void {
  if (child.pid === undefined) return;
  try {
    process.kill(-child.pid, signal);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ESRCH") throw error; // already gone is what was wanted
  }
}

/** A detached child would survive a test run that is cut short. */
export function killWithParent(child: ChildProcess): void {
  const kill = (): void => killGroup(child, "SIGKILL");
  process.once("exit", kill);
  child.once("close", () => process.off("exit", kill));
}
