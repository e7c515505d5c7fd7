import type { Command } from "commander";
import { exitCodes, usageFailure } from "./failure.ts";

/**
 * Prepares a command and all below it: a command line that cannot be understood ends with 2 and names the command's own
 * help, where `json` says so in one line of JSON; help and version end with 0. Returns the command.
 */
export function applyUsage(command: Command, json: boolean, parents: readonly string[] = []): Command {
  const path = [...parents, command.name()];
  const hint = `(\`${path.join(" ")} --help\` says how it is used)`;
  command.exitOverride((error) => process.exit(error.exitCode === 0 ? 0 : exitCodes.usage));
  if (json) command.configureOutput({ outputError: (text, write) => write(usageFailure(text, hint)) });
  else command.showHelpAfterError(hint);
  for (const child of command.commands) applyUsage(child, json, path);
  return command;
}
