import { Command } from "commander";
import { identity } from "../compose/identity.ts";
import { authorCommands } from "./command/author.ts";
import { buildCommand, type CommandDescription, withExamples } from "./command/description.ts";
import { operateCommands } from "./command/operate.ts";
import { proveCommands } from "./command/prove.ts";
import { reviewCommands } from "./command/review.ts";
import { startCommands } from "./command/start.ts";
import { applyUsage, reportFailure, wantsJson } from "./failure.ts";

/** Every command, by what its user is about to do. */
const groups: Readonly<Record<string, readonly CommandDescription[]>> = {
  "Start:": startCommands,
  "Author policy:": authorCommands,
  "Review:": reviewCommands,
  "Prove:": proveCommands,
  "Operate:": operateCommands,
};

const examples = `
# on this machine: a demo server, the shipped policy packs, two keys
gateway serve
# list the requests that wait for a review
GATEWAY_API_KEY=$(cat data/operator.key) gateway approvals list`;

/** Builds the whole command line; the code of a command is loaded when it runs. */
export function buildProgram(): Command {
  const program = new Command("gateway")
    .description("Govern what AI agents do: every action is judged by policy and leaves evidence.")
    .version(identity.version);
  for (const [title, descriptions] of Object.entries(groups)) {
    program.commandsGroup(title);
    for (const description of descriptions) program.addCommand(buildCommand(description));
  }
  return withExamples(program, examples.trim());
}

/** Runs one command line to its end, and sets the exit code of the process. */
export async function runProgram(argv: readonly string[]): Promise<void> {
  // A reader such as `head` may close the pipe early: ends like SIGPIPE would.
  process.stdout.on("error", (error: NodeJS.ErrnoException) => {
    if (error.code !== "EPIPE") throw error;
    process.exit(141);
  });
  const isJson = wantsJson(argv);
  try {
    await applyUsage(buildProgram(), isJson).parseAsync(argv);
  } catch (cause) {
    process.exitCode = reportFailure(cause, isJson);
  }
}
