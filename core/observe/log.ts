import pino, { type DestinationStream, type Logger } from "pino";
import { escapeJson } from "../action/json.ts";

type LogLevel = "debug" | "info" | "warn" | "error" | "silent";

/** A constant message and fields, on standard error. Standard output is for data. */
export type Log = Logger;

/**
 * Opens the log: JSON lines, or words where a person reads along. Fields that could carry a credential are removed
 * whatever their value.
 */
export function openLog(level: LogLevel, atTerminal: boolean): Log {
  return pino(
    {
      level,
      base: null,
      timestamp: pino.stdTimeFunctions.isoTime,
      formatters: { level: (label) => ({ level: label }) },
      // Upstreams and clients are named there as they call themselves.
      hooks: { streamWrite: escapeJson },
      redact: { paths: ["key", "*.key", "authorization", "*.authorization", "headers"], remove: true },
    },
    atTerminal ? terminal : pino.destination({ dest: 2, sync: false }),
  );
}

const terminal: DestinationStream = { write: (line) => void process.stderr.write(terminalLine(line)) };

/** One entry of the log as a person at a terminal reads it: time of day, level, message, then the fields. */
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

/** Whatever could move the cursor, colour the screen or turn the direction of text comes out as its code. */
function visible(text: string): string {
  return text.replace(/[^\x20-\x7e\p{L}\p{N}]/gu, (char) => `\\u{${char.codePointAt(0)?.toString(16)}}`);
}

/** What is said of an error that nobody caught. */
interface Crash {
  readonly error: string;
  /** As Node has them: `ERR_INVALID_ARG_TYPE`, `EPIPE`. */
  readonly code: string | null;
  /** Where it was thrown, the innermost place first. */
  readonly stack: readonly string[];
}

const maxFrames = 16;

/**
 * An error without its words: message, cause and whatever else hangs on it may quote arguments, answers and keys, and
 * Node would print all of that. Where it was thrown says enough.
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

/** None where the stack does not begin with the message as it is: lines of the message might pass for places. */
function framesOf({ message, stack = "" }: Error): readonly string[] {
  const [head = ""] = /^\w+(?: \[\w+\])?(?:: )?/.exec(stack) ?? [];
  if (head === "" || !stack.startsWith(message, head.length)) return [];
  const lines = stack.slice(head.length + message.length).split("\n");
  const frames = lines.filter((line) => line.startsWith("    at "));
  return frames.slice(0, maxFrames).map((line) => line.trim());
}
