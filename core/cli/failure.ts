import type { Command } from "commander";
import { GatewayError } from "../action/error.ts";
import { asciiJson } from "../action/json.ts";
import { say } from "./print.ts";

/** How a command ends that did not do what it was asked: scripts tell these apart. `evidence verify` grades beyond them. */
const exitCodes = {
  /** A check failed, or what was asked for was refused. */
  failed: 1,
  /** The command line cannot be understood. */
  usage: 2,
  /** No gateway answers where one was asked; it may be worth a later try. */
  unreached: 3,
} as const;

/** Whether who typed these words reads JSON. Known before they are understood, as what is wrong with them is told so too. */
export function wantsJson(words: readonly string[]): boolean {
  const end = words.indexOf("--");
  return words.slice(0, end === -1 ? words.length : end).includes("--json");
}

/** Says on standard error why a command ends, as words or as one line of JSON; returns its exit code. */
export function tellFailure(cause: unknown, json: boolean): number {
  const { message, code, data } = GatewayError.from(cause);
  if (!json) say(message);
  else process.stderr.write(errorLine({ code: data?.code ?? code, message, status: data?.status }));
  return code === "GATEWAY_UNREACHABLE" ? exitCodes.unreached : exitCodes.failed;
}

/** The same of a command line that cannot be understood; `text` is commander's. */
export function usageFailure(text: string, hint: string): string {
  return errorLine({ code: "USAGE", message: `${text.replace(/^error: /, "").trimEnd()} ${hint}` });
}

function errorLine(error: object): string {
  return `${asciiJson({ error })}\n`;
}

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
