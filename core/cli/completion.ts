import type { Argument, Command, Option } from "commander";
import { print, quotePosix } from "./print.ts";

type Shell = "bash" | "zsh" | "fish";

const scripts: Readonly<Record<Shell, (program: ShapeCommand) => string>> = {
  bash: bashScript,
  zsh: zshScript,
  fish: fishScript,
};

/** `gateway completion`. The script is made from the commands themselves, and evaluates nothing that is typed. */
export function printCompletion(shell: Shell, { json }: { readonly json?: true }, command: Command): void {
  const script = scripts[shell](shapeOf(command.parent ?? command));
  if (json) print(JSON.stringify({ shell, script }));
  else process.stdout.write(script);
}

/**
 * Returns a completion script for bash 4 and later. Typed words are compared and never evaluated: they are the subject of
 * `case`, and follow `--` in `compgen`.
 */
export function bashScript(program: ShapeCommand): string {
  const { steps, taking, places, commands, flags } = tablesOf(program);
  return `# bash completion for gateway, as \`gateway completion bash\` prints it
_gateway() {
  local cur=\${COMP_WORDS[COMP_CWORD]} at=gateway place=0 value='' word i
  for ((i = 1; i < COMP_CWORD; i++)); do
    word=\${COMP_WORDS[i]}
    if [[ $word == '=' ]]; then continue; fi
    if [[ -n $value ]]; then value=''; continue; fi
    case "$at $word" in
${steps.map(([subject, path]) => `      ${quotePosix(subject)}) at=${quotePosix(path)} place=0 ;;`).join("\n")}
${taking.map(([subject, value]) => `      ${quotePosix(subject)}) value=${quotePosix(value)} ;;`).join("\n")}
      *' '-*) ;;
      *) place=$((place + 1)) ;;
    esac
  done
  if [[ $cur == '=' ]]; then cur=''; fi
  if [[ -z $value && $cur == -* ]]; then
    case "$at" in
${flags.map(([path, offers]) => `      ${quotePosix(path)}) value=${words(offers)} ;;`).join("\n")}
    esac
  elif [[ -z $value ]]; then
    case "$at $place" in
${places.map(([subject, value]) => `      ${quotePosix(subject)}) value=${quotePosix(value)} ;;`).join("\n")}
    esac
  fi
  if [[ $value == '@command' ]]; then
    case "$at" in
${commands.map(([path, offers]) => `      ${quotePosix(path)}) value=${words(offers)} ;;`).join("\n")}
    esac
  fi
  COMPREPLY=()
  case "$value" in
    @file) compopt -o default ;;
    @folder) compopt -o dirnames ;;
    @text) ;;
    *) mapfile -t COMPREPLY < <(compgen -W "$value" -- "$cur") ;;
  esac
}
complete -F _gateway gateway
`;
}

function words(offers: readonly Offer[]): string {
  return quotePosix(offers.map(([word]) => word).join(" "));
}

/** Returns a completion script for fish 3.4 and later. Typed words are compared and never evaluated. */
export function fishScript(program: ShapeCommand): string {
  const { steps, taking, places, commands, flags } = tablesOf(program);
  return `# fish completion for gateway, as \`gateway completion fish\` prints it
# Prints the command, the value that the option before the current word takes, and the value at its position.
function __gateway_state
    set -l at gateway
    set -l place 0
    set -l value ''
    set -l here ''
    set -l tokens (commandline -opc)
    set -e tokens[1]
    for word in $tokens
        if test -n "$value"
            set value ''
            continue
        end
        switch "$at $word"
${steps.map(([subject, path]) => branch(subject, `set at ${quoteFish(path)}; set place 0`)).join("\n")}
${taking.map(([subject, value]) => branch(subject, `set value ${quoteFish(value)}`)).join("\n")}
            case '* -*'
            case '*'
                set place (math $place + 1)
        end
    end
    switch "$at $place"
${places.map(([subject, value]) => branch(subject, `set here ${quoteFish(value)}`)).join("\n")}
    end
    printf '%s\\n' $at "$value" "$here"
end

function __gateway_is
    set -l state (__gateway_state)
    test "$state[2]" = $argv[1]; or test -z "$state[2]" -a "$state[3]" = $argv[1]
end

function __gateway_words
    set -l state (__gateway_state)
    if test -z "$state[2]"; and string match -q -- '-*' (commandline -ct)
        switch "$state[1]"
${flags.map(([path, offers]) => branch(path, printOffers(offers))).join("\n")}
        end
        return
    end
    set -l value $state[2]
    test -n "$value"; or set value $state[3]
    switch "$value"
        case @command
            switch "$state[1]"
${commands.map(([path, offers]) => branch(path, printOffers(offers))).join("\n")}
            end
        case '' '@*'
        case '*'
            string split ' ' -- $value
    end
end

complete -c gateway -e
complete -c gateway -f -a '(__gateway_words)'
complete -c gateway -n '__gateway_is @file' -F
complete -c gateway -n '__gateway_is @folder' -f -a '(__fish_complete_directories)'
`;
}

function branch(subject: string, command: string): string {
  return `            case ${quoteFish(subject)}\n                ${command}`;
}

/** The fish command that prints a line for each word, with its description behind a tab. */
function printOffers(offers: readonly Offer[]): string {
  return `printf '%s\\t%s\\n' ${offers.map((offer) => offer.map(quoteFish).join(" ")).join(" ")}`;
}

/** Returns a completion script for zsh, to source or to store as `_gateway` in `fpath`. Typed words are compared and never evaluated. */
export function zshScript(program: ShapeCommand): string {
  const { steps, taking, places, commands, flags } = tablesOf(program);
  return `#compdef gateway
# zsh completion for gateway, as \`gateway completion zsh\` prints it
_gateway() {
  local at=gateway value='' word
  local -i place=0 i
  local -a offers
  for ((i = 2; i <= CURRENT; i++)); do
    word=\${(Q)words[i]}
    if ((i == CURRENT)); then
      [[ -z $value && $word == --*=* ]] || break
      compset -P '*='
      word=\${word%%=*}
    fi
    if [[ -n $value ]]; then value=''; continue; fi
    case "$at $word" in
${steps.map(([subject, path]) => `      ${quotePosix(subject)}) at=${quotePosix(path)} place=0 ;;`).join("\n")}
${taking.map(([subject, value]) => `      ${quotePosix(subject)}) value=${quotePosix(value)} ;;`).join("\n")}
      *' '-*) ;;
      *) place=$((place + 1)) ;;
    esac
  done
  if [[ -z $value && $words[CURRENT] == -* ]]; then
    case "$at" in
${flags.map(([path, offers]) => `      ${quotePosix(path)}) offers=(${pairs(offers)}) ;;`).join("\n")}
    esac
    _describe -t options option offers
    return
  fi
  if [[ -z $value ]]; then
    case "$at $place" in
${places.map(([subject, value]) => `      ${quotePosix(subject)}) value=${quotePosix(value)} ;;`).join("\n")}
    esac
  fi
  case "$value" in
    @command)
      case "$at" in
${commands.map(([path, offers]) => `        ${quotePosix(path)}) offers=(${pairs(offers)}) ;;`).join("\n")}
      esac
      _describe -t commands command offers ;;
    @file) _files ;;
    @folder) _files -/ ;;
    @text | '') ;;
    *) compadd -- \${(s: :)value} ;;
  esac
}
if [[ $funcstack[1] == _gateway ]]; then _gateway "$@"; else compdef _gateway gateway; fi
`;
}

/** Words and descriptions in the form of `_describe`. */
function pairs(offers: readonly Offer[]): string {
  return offers.map(([word, description]) => quotePosix(`${word}:${description}`)).join(" ");
}

/** Quotes a text as one word of fish. */
function quoteFish(text: string): string {
  return `'${text.replaceAll("\\", "\\\\").replaceAll("'", "\\'")}'`;
}

/** A value on a command line: none, one of some words, a file, a folder, or free text. */
type Value = { readonly kind: "none" | "file" | "folder" | "text" } | WordValue;

interface WordValue {
  readonly kind: "word";
  readonly words: readonly string[];
}

interface ShapeOption {
  /** `--data`, and `-d` where there is one. */
  readonly flags: readonly string[];
  readonly description: string;
  readonly value: Value;
}

interface ShapeCommand {
  /** `gateway evidence export`. */
  readonly path: string;
  readonly description: string;
  readonly commands: readonly ShapeCommand[];
  readonly options: readonly ShapeOption[];
  /** By position. */
  readonly values: readonly Value[];
}

/** Words that stand in scripts without quotes, in three shells. */
const plainWord = /^[A-Za-z0-9][A-Za-z0-9_-]*$/;
const plainFlag = /^--?[A-Za-z0-9][A-Za-z0-9-]*$/;

/** Describes a command and those below it for a completion script. Throws TypeError for a name that a shell could evaluate. */
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

/** Derives the kind of a value from its placeholder: `--data <folder>`, `<file>`. */
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
function everyCommand(command: ShapeCommand): readonly ShapeCommand[] {
  return [command, ...command.commands.flatMap(everyCommand)];
}

/** A word that completion offers, and its description. */
type Offer = readonly [word: string, description: string];

/** The tables of a script. It compares the subject of each row with the words before the cursor. */
interface Tables {
  /** `<path> <word>`, and the path of the command below. */
  readonly steps: readonly (readonly [subject: string, path: string])[];
  /** `<path> <flag>`, and its value: the words to offer, or `@file`, `@folder`, `@text`. */
  readonly taking: readonly (readonly [subject: string, value: string])[];
  /** `<path> <position>`, and its value: the same, or `@command`. */
  readonly places: readonly (readonly [subject: string, value: string])[];
  /** A path, and the commands below it. */
  readonly commands: readonly (readonly [path: string, offers: readonly Offer[]])[];
  /** A path, and its options. */
  readonly flags: readonly (readonly [path: string, offers: readonly Offer[]])[];
}

function tablesOf(program: ShapeCommand): Tables {
  const all = everyCommand(program);
  const holders = all.filter(({ commands }) => commands.length > 0);
  return {
    steps: holders.flatMap(({ commands }) => commands.map(({ path }) => [path, path] as const)),
    taking: all.flatMap(({ path, options }) =>
      options
        .filter(({ value }) => value.kind !== "none")
        .flatMap(({ flags, value }) => flags.map((flag) => [`${path} ${flag}`, valueText(value)] as const)),
    ),
    places: all.flatMap(({ path, commands, values }) => {
      const texts = commands.length > 0 ? ["@command"] : values.map(valueText);
      return texts.map((value, place) => [`${path} ${place}`, value] as const);
    }),
    commands: holders.map(({ path, commands }) => [path, commands.map(offerOf)]),
    flags: all.map(({ path, options }) => [
      path,
      options.flatMap(({ flags, description }) => flags.map((flag): Offer => [flag, description])),
    ]),
  };
}

/** Renders a value; no word begins with `@`. */
function valueText(value: Value): string {
  return value.kind === "word" ? value.words.join(" ") : `@${value.kind}`;
}

function offerOf({ path, description }: ShapeCommand): Offer {
  return [path.slice(path.lastIndexOf(" ") + 1), description];
}
