import { type ActionEffect, strictestEffect } from "../../action/action-fact.ts";
import type { EnvironmentRule, ProgramCheck } from "../effect-table.ts";
import { awkEffect } from "./awk-program.ts";
import { holdsCommand, variableEffect } from "./environment.ts";
import { sedEffect } from "./sed-script.ts";
import type { ShellWord } from "./shell-word.ts";

/** Returns the effect of words whose meaning is a language of its own. */
export function checkEffect(
  check: ProgramCheck,
  words: readonly ShellWord[],
  environment: EnvironmentRule,
): ActionEffect {
  const texts = words.map(({ text }) => text ?? "");
  switch (check) {
    case "test":
      return testEffect(texts);
    case "printf":
      return texts[0]?.startsWith("-") === true && texts[0] !== "--" ? "unknown" : "read";
    case "set":
      return setEffect(texts);
    case "declaration":
      return declarationEffect(texts, environment);
    case "find":
      return findEffect(texts);
    case "sed":
      return sedEffect(texts);
    case "awk":
      return awkEffect(texts);
    case "tar":
      return tarEffect(texts);
    case "jq":
      return jqEffect(texts);
    case "ps":
      return psEffect(texts);
    case "git":
      return "read";
  }
}

const arithmeticTests = new Set(["-eq", "-ne", "-lt", "-le", "-gt", "-ge"]);

/** `-v` and comparisons of numbers evaluate subscripts, and with them commands. */
function testEffect(texts: readonly string[]): ActionEffect {
  if (texts.some((text) => holdsCommand(text))) return "execute";
  if (texts.some((text) => text === "-v" || text === "-R")) return "unknown";
  const compares = texts.some((text) => arithmeticTests.has(text));
  return compares && texts.some((text) => text.length > 1 && text.includes("[")) ? "execute" : "read";
}

function setEffect(texts: readonly string[]): ActionEffect {
  const options = new Set(["pipefail", "errexit", "nounset"]);
  const isPlain = texts.length > 0 && texts.every((text) => /^[-+][euf]*o?$/.test(text) || options.has(text));
  return isPlain ? "read" : "unknown";
}

/** Names that are set, declared or read. A subscript is evaluated. */
function declarationEffect(texts: readonly string[], environment: EnvironmentRule): ActionEffect {
  // Without a name all variables are printed, credentials among them.
  if (texts.every((text) => text.startsWith("-"))) return "unknown";
  return strictestEffect(
    texts.map((text) => {
      if (/^[-+][xrgpaAfst]+$/.test(text)) return "read";
      const [, name, value] = /^([A-Za-z_]\w*)(?:\+?=([\s\S]*))?$/.exec(text) ?? [];
      if (name === undefined) return holdsCommand(text) ? "execute" : "unknown";
      return variableEffect(environment, { name, value: { text: value ?? "", doubt: "known" } });
    }),
  );
}

const findFlags: ReadonlyMap<string, ActionEffect> = new Map([
  ["-delete", "delete"],
  ["-fprint", "write"],
  ["-fprint0", "write"],
  ["-fprintf", "write"],
  ["-fls", "write"],
]);

/** The programs of `-exec` are judged as commands of their own. */
function findEffect(texts: readonly string[]): ActionEffect {
  return strictestEffect(texts.map((text) => findFlags.get(text) ?? "read"));
}

const findExec = new Set(["-exec", "-execdir", "-ok", "-okdir"]);

/** Returns the words of every program that `find` runs, `{}` in them as the name of a file. */
export function findPrograms(words: readonly ShellWord[]): readonly (readonly ShellWord[])[] {
  const programs: ShellWord[][] = [];
  for (let at = 0; at < words.length; at += 1) {
    if (!findExec.has(words[at]?.text ?? "")) continue;
    const program: ShellWord[] = [];
    for (at += 1; at < words.length; at += 1) {
      const word = words[at];
      if (word === undefined || word.text === ";") break;
      if (word.text === "+" && program.at(-1)?.doubt === "names") break;
      program.push(word.text?.includes("{}") === true ? { text: null, doubt: "names" } : word);
    }
    programs.push(program);
  }
  return programs;
}

/** The program of jq reads its input; its environment and other files of program text are asked for by name. */
function jqEffect(texts: readonly string[]): ActionEffect {
  const takesFile = texts.some((text) => /^-[a-zA-Z]*[fL]|^--(?:from-file|library-path)/.test(text));
  const isPlain = !texts.some((text) => /\benv\b|\$ENV\b|\b(?:import|include|modulemeta|get_search_list)\b/.test(text));
  return isPlain && !takesFile ? "read" : "unknown";
}

/** `ps e` and `ps auxe`, without a dash, print the environment of every process. */
function psEffect(texts: readonly string[]): ActionEffect {
  return texts.some((text) => /^[a-zA-Z]*[eE]/.test(text)) ? "unknown" : "read";
}

const tarExecutes = [
  "--checkpoint-action",
  "--to-command",
  "--use-compress-program",
  "--info-script",
  "--new-volume-script",
  "--rsh-command",
  "--rmt-command",
];

function tarEffect(texts: readonly string[]): ActionEffect {
  if (isTarList(texts)) return "read";
  const longs = texts.filter((text) => text.startsWith("--")).map((text) => text.split("=", 1)[0] ?? "");
  if (longs.some((name) => name.length > 2 && tarExecutes.some((flag) => flag.startsWith(name)))) return "execute";
  const clusters = texts.filter((text, at) => (at === 0 ? !text.startsWith("--") : /^-[^-]/.test(text)));
  if (
    clusters.some((text) => /[IF]/.test(text.split("f", 1)[0] ?? "")) ||
    clusters.slice(1).some((text) => /[IF]/.test(text))
  )
    return "execute";
  return "write";
}

/** Returns true where tar only lists an archive of this machine. */
function isTarList(texts: readonly string[]): boolean {
  const first = texts[0] ?? "";
  const lists = first === "--list" || (/^-?[tvzjJaf]+$/.test(first) && first.includes("t"));
  const rest = texts.slice(1);
  return (
    lists &&
    rest.every(
      (text) => !text.startsWith("-") || text === "-" || /^(?:-[fvzjJ]+|--file=[^:]+|--verbose)$/.test(text),
    ) &&
    !texts.some((text) => text.includes(":"))
  );
}
