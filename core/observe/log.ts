import pino, { type Logger } from "pino";

export type LogLevel = "debug" | "info" | "warn" | "error" | "silent";

/** JSON lines on standard error: a constant message and fields. Standard output is for data. */
export type Log = Logger;

/** Opens the log. Fields that could carry a credential are removed whatever their value. */
export function openLog(level: LogLevel): Log {
  return pino(
    {
      level,
      base: null,
      timestamp: pino.stdTimeFunctions.isoTime,
      formatters: { level: (label) => ({ level: label }) },
      redact: { paths: ["key", "*.key", "authorization", "*.authorization", "headers"], remove: true },
    },
    pino.destination({ dest: 2, sync: false }),
  );
}
