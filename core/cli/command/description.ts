import { type Argument, Command, type Option } from "commander";

/** A command as help, completion and the parser need it. Its code is loaded when it runs. */
export interface LeafCommand {
  readonly name: string;
  /** An imperative verb and its object. */
  readonly summary: string;
  readonly arguments?: readonly Argument[];
  readonly options: readonly Option[];
  /** Shell lines, each below a `#` line that names its purpose, the most common one first. */
  readonly examples: string;
  /** True for the command that its group runs when none is named. */
  readonly isDefault?: true;
  readonly load: () => Promise<Action>;
}

/** Commands under one name. */
export interface CommandGroup {
  readonly name: string;
  readonly summary: string;
  readonly commands: readonly CommandDescription[];
}

export type CommandDescription = LeafCommand | CommandGroup;

/** Called with the arguments, the options and the command, as commander passes them. */
type Action = (...given: never[]) => Promise<unknown> | unknown;

const examplesByCommand = new WeakMap<Command, string>();

/** Builds a command and all below it. */
export function buildCommand(description: CommandDescription): Command {
  const command = new Command(description.name).description(description.summary);
  if ("commands" in description) {
    for (const child of description.commands) {
      command.addCommand(buildCommand(child), { isDefault: "isDefault" in child && child.isDefault === true });
    }
    return withExamples(command, command.commands.map(firstExampleOf).join("\n"));
  }
  for (const argument of description.arguments ?? []) command.addArgument(argument);
  for (const option of description.options) command.addOption(option);
  command.action(async (...given: unknown[]) => {
    const action = await description.load();
    await action(...(given as never[]));
  });
  return withExamples(command, description.examples.trim());
}

/** Ends a command's help with examples, and prints its titles and names in bold type on a terminal. */
export function withExamples(command: Command, examples: string): Command {
  examplesByCommand.set(command, examples);
  command.configureHelp({ styleTitle: bold, styleSubcommandTerm: bold, styleOptionTerm: bold });
  return command.addHelpText("after", () => `\n${bold("Examples:")}\n${examples.replace(/^/gm, "  ")}`);
}

/** The examples of a command that `buildCommand` built; those of a group are the first of each command in it. */
export function examplesOf(command: Command): string {
  return examplesByCommand.get(command) ?? "";
}

function firstExampleOf(command: Command): string {
  return examplesOf(command).split("\n").slice(0, 2).join("\n");
}

/** Commander removes the escapes where the stream is no terminal, and where NO_COLOR is set. */
function bold(text: string): string {
  return `\u001b[1m${text}\u001b[22m`;
}
