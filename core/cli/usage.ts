import type { Command } from "commander";

/**
 * Prepares a command and all below it: a command line that cannot be understood ends with 2 and names the command's own
 * help, help and version end with 0. Returns the command.
 */
export function applyUsage(command: Command, parents: readonly string[] = []): Command {
  const path = [...parents, command.name()];
  command
    .exitOverride((error) => process.exit(error.exitCode === 0 ? 0 : 2))
    .showHelpAfterError(`(\`${path.join(" ")} --help\` says how it is used)`);
  for (const child of command.commands) applyUsage(child, path);
  return command;
}
