import pino, { type DestinationStream, type Logger } from "pino";
import { escapeJson } from "../action/json.ts";

type LogLevel = "debug" | "info" | "warn" | "error" | "silent";

/** A constant message and fields, on standard error. Standard output is for data. */
export type Log = Logger;

/** Bytes that wait for whoever reads standard error. Further lines are lost: a reader that hangs must not take the memory. */
const maxWaitingBytes = 16_777_216;

/**
 * Opens the log: JSON lines, or readable lines on a terminal. Fields that could carry a credential are removed, whatever
 * their value.
 */
export function openLog(level: LogLevel, atTerminal: boolean): Log {
  return pino(
    {
      level,
      base: null,
      timestamp: pino.stdTimeFunctions.isoTime,
      formatters: { level: (label) => ({ level: label }) },
      // Names chosen by upstreams and clients must be inert wherever the log is shown.
      hooks: { streamWrite: escapeJson },
      redact: { paths: ["key", "*.key", "authorization", "*.authorization", "headers"], remove: true },
    },
    atTerminal ? terminal : pino.destination({ dest: 2, sync: false, maxLength: maxWaitingBytes }),
  );
}

const terminal: DestinationStream = { write: (line) => void process.stderr.write(terminalLine(line)) };

/** Formats one entry for a terminal: time of day, level, message, then the fields. */
export function terminalLine(json: string): string {
  const { time, level, msg, ...fields } = JSON.parse(json) as Readonly<Record<string, unknown>>;
  const words = [String(time).slice(11, 19), String(level).padEnd(5), visible(String(msg))];
  for (const [name, value] of Object.entries(fields)) words.push(`${visible(name)}=${fieldText(value)}`);
  return `${words.join(" ")}\n`;
}

function fieldText(value: unknown): string {
  if (typeof value === "string" && /^[\x21\x23-\x7e]+$/.test(value)) return value;
  return visible(JSON.stringify(value));
}

/** Escapes everything that could move the cursor, colour the screen or reverse the direction of text. */
function visible(text: string): string {
  return text.replace(/[^\x20-\x7e\p{L}\p{N}…]/gu, (char) => `\\u{${char.codePointAt(0)?.toString(16)}}`);
}

/** The log fields of an uncaught error. */
interface Crash {
  readonly error: string;
  /** Node's error code, such as `ERR_INVALID_ARG_TYPE` or `EPIPE`. */
  readonly code: string | null;
  /** Stack frames, innermost first. */
  readonly stack: readonly string[];
}

const maxFrames = 16;

/**
 * Returns an error without its message, cause and other members, which may quote arguments, outputs and keys. The stack
 * says enough.
 */
export function crashOf(cause: unknown): Crash {
  if (!(cause instanceof Error)) return { error: typeof cause, code: null, stack: [] };
  const { code } = cause as NodeJS.ErrnoException;
  return {
    error: Object.getPrototypeOf(cause).constructor.name,
    code: typeof code === "string" && /^[A-Z][A-Z0-9_]{1,63}$/.test(code) ? code : null,
    stack: framesOf(cause),
  };
}

/** Returns no frames where the stack does not begin with the exact message: lines of the message could pass for frames. */
function framesOf({ message, stack = "" }: Error): readonly string[] {
  const [head = ""] = /^\w+(?: \[\w+\])?(?:: )?/.exec(stack) ?? [];
  if (head === "" || !stack.startsWith(message, head.length)) return [];
  const lines = stack.slice(head.length + message.length).split("\n");
  const frames = lines.filter((line) => line.startsWith("    at "));
  return frames.slice(0, maxFrames).map((line) => line.trim());
}
