import type { Command } from "commander";
import { examplesOf } from "./example.ts";

const style = { styleTitle: bold, styleSubcommandTerm: bold, styleOptionTerm: bold };

/** Lets the help of a command and of all below it end with examples, and stand out on a terminal. Returns the command. */
export function completeHelp(command: Command, parents: readonly string[] = []): Command {
  const path = [...parents, command.name()];
  const examples = examplesOf(command, path.join(" "));
  command.configureHelp(style);
  if (examples !== "") command.addHelpText("after", () => `\n${bold("Examples:")}\n${examples.replace(/^/gm, "  ")}`);
  for (const child of command.commands) completeHelp(child, path);
  return command;
}

/** Commander takes it out again where the stream is no terminal, and where NO_COLOR is set. */
function bold(text: string): string {
  return `\u001b[1m${text}\u001b[22m`;
}
