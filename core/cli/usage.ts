import type { CommanderError } from "commander";

/** For `exitOverride`: a command line that cannot be understood ends with 2, help and version with 0. */
export function exitOnUsage(error: CommanderError): never {
  process.exit(error.exitCode === 0 ? 0 : 2);
}
