import type { Command } from "commander";
import { GatewayError } from "../action/error.ts";
import { asciiJson } from "../action/json.ts";
import { say } from "./print.ts";

/** Exit codes of commands that fail; scripts tell them apart. `evidence verify` adds its verdicts, from 10. */
const exitCodes = {
  /** A check failed, or the request was refused. */
  failed: 1,
  /** The command line is invalid; nothing was done. */
  usage: 2,
  /** No gateway, registry or TUF repository answered; a later try may succeed. */
  unreachable: 3,
} as const;

const unreachable: ReadonlySet<string> = new Set(["GATEWAY_UNREACHABLE", "REGISTRY_UNREACHABLE", "TUF_UNREACHABLE"]);

/** Returns whether a command line asks for JSON. Answers before it is parsed: usage errors are JSON then, too. */
export function wantsJson(argv: readonly string[]): boolean {
  const end = argv.indexOf("--");
  return argv.slice(0, end === -1 ? argv.length : end).includes("--json");
}

/** Prints on standard error why a command failed, as text or as one line of JSON, and returns the exit code. */
export function reportFailure(cause: unknown, json: boolean): number {
  const { message: said, code, data } = GatewayError.from(cause);
  const message = code === "KEY_UNKNOWN" ? `${said}; check GATEWAY_API_KEY` : said;
  if (json) process.stderr.write(errorLine({ code, message, status: data?.status }));
  else say(message);
  return unreachable.has(code) ? exitCodes.unreachable : exitCodes.failed;
}

/** Renders commander's `text` about an invalid command line as one line of JSON. */
export function usageFailure(text: string, hint: string): string {
  return errorLine({ code: "USAGE", message: `${text.replace(/^error: /, "").trimEnd()} ${hint}` });
}

function errorLine(error: object): string {
  return `${asciiJson({ error })}\n`;
}

/**
 * Prepares a command and all below it: an invalid command line ends with 2 and names the command's help, with `json` as
 * one line of JSON; help and version end with 0. Returns the command.
 */
export function applyUsage(command: Command, json: boolean, parents: readonly string[] = []): Command {
  const path = [...parents, command.name()];
  const hint = `(see \`${path.join(" ")} --help\`)`;
  command.exitOverride((error) => process.exit(error.exitCode === 0 ? 0 : exitCodes.usage));
  if (json) command.configureOutput({ outputError: (text, write) => write(usageFailure(text, hint)) });
  else command.showHelpAfterError(hint);
  for (const child of command.commands) applyUsage(child, json, path);
  return command;
}
