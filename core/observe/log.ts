import pino, { type DestinationStream, type Logger } from "pino";
import { escapeJson } from "../kernel/ascii-json.ts";
import { terminalLine } from "./terminal-line.ts";

export type LogLevel = "debug" | "info" | "warn" | "error" | "silent";

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
