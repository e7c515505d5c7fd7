import type { Argument, Command, Option } from "commander";

/** What may stand in a place: nothing, one of some words, a file, a folder, or what no shell can know. */
export type Value = { readonly kind: "none" | "file" | "folder" | "text" } | WordValue;

interface WordValue {
  readonly kind: "word";
  readonly words: readonly string[];
}

export interface ShapeOption {
  /** `--data`, and `-d` where there is one. */
  readonly flags: readonly string[];
  readonly description: string;
  readonly value: Value;
}

export interface ShapeCommand {
  /** `gateway evidence export`. */
  readonly path: string;
  readonly description: string;
  readonly commands: readonly ShapeCommand[];
  readonly options: readonly ShapeOption[];
  /** By position. */
  readonly values: readonly Value[];
}

/** What becomes part of a script without quotes, in three shells. */
const plainWord = /^[A-Za-z0-9][A-Za-z0-9_-]*$/;
const plainFlag = /^--?[A-Za-z0-9][A-Za-z0-9-]*$/;

/** All that a shell has to know of a command and of those below it. Throws TypeError where a name is not plain. */
export function shapeOf(command: Command, parents: readonly string[] = []): ShapeCommand {
  const path = [...parents, checkPlain(command.name(), plainWord)];
  const help = command.createHelp();
  const own = command.commands.map((child) => shapeOf(child, path));
  return {
    path: path.join(" "),
    description: command.description(),
    commands: own.length === 0 ? own : [...own, helpShape(path, own)],
    options: help.visibleOptions(command).map(optionShape),
    values: command.registeredArguments.map(valueOfArgument),
  };
}

/** `gateway help evidence` and the like. */
function helpShape(path: readonly string[], commands: readonly ShapeCommand[]): ShapeCommand {
  const words = commands.map((command) => command.path.split(" ").at(-1) ?? "");
  return {
    path: [...path, "help"].join(" "),
    description: "display help for command",
    commands: [],
    options: [],
    values: [{ kind: "word", words }],
  };
}

function optionShape(option: Option): ShapeOption {
  const flags = [option.short, option.long].filter((flag) => flag !== undefined && flag !== null);
  const takesValue = option.required || option.optional;
  return {
    flags: flags.map((flag) => checkPlain(flag, plainFlag)),
    description: option.description,
    value: takesValue ? kindOf(option.argChoices, option.flags) : { kind: "none" },
  };
}

function valueOfArgument(argument: Argument): Value {
  return kindOf(argument.argChoices, argument.name());
}

/** What a value is called says what it is: `--data <folder>`, `<file>`. */
function kindOf(choices: readonly string[] | undefined, name: string): Value {
  if (choices !== undefined) return { kind: "word", words: choices.map((word) => checkPlain(word, plainWord)) };
  if (/\bfolder\b/.test(name)) return { kind: "folder" };
  return { kind: /\b(?:file|path|bundle|place)\b/.test(name.replace(/^.*--[\w-]+/, "")) ? "file" : "text" };
}

function checkPlain(word: string, plain: RegExp): string {
  if (plain.test(word)) return word;
  throw new TypeError(`completion: expected a word that no shell reads as anything else, got \`${word}\``);
}

/** A command and all below it. */
export function everyCommand(command: ShapeCommand): readonly ShapeCommand[] {
  return [command, ...command.commands.flatMap(everyCommand)];
}
