import type { WrapperRule } from "../effect-table.ts";
import type { SyntaxAssignment } from "./shell-syntax.ts";
import { knownWord, type ShellWord } from "./shell-word.ts";

/** A program without one wrapper: its words, or the command line that the wrapper gets. */
export type Unwrapped =
  | { readonly kind: "words"; readonly words: readonly ShellWord[]; readonly assignments: readonly SyntaxAssignment[] }
  | { readonly kind: "script"; readonly source: ShellWord }
  | { readonly kind: "input" }
  | { readonly kind: "shown" }
  | { readonly kind: "bare" }
  | { readonly kind: "unclear" };

interface Options {
  readonly rest: readonly ShellWord[];
  readonly letters: string;
  /** The value of the last option `-I`. */
  readonly replaced: string | undefined;
}

/**
 * Takes a wrapper off. `words` are those after its name. With an option that is not in the table the program cannot be told from
 * the option's value: `unclear`.
 */
export function unwrap(rule: WrapperRule, words: readonly ShellWord[], appended: ShellWord): Unwrapped {
  const options = readOptions(rule, words);
  if (options === null) return { kind: "unclear" };
  if ([...(rule.shows ?? "")].some((letter) => options.letters.includes(letter))) return { kind: "shown" };
  if (rule.script === true) return shellScript(options);
  const { assignments, rest: program } = takeAssignments(rule, options.rest);
  if (program === null) return { kind: "unclear" };
  const operands = rule.operands ?? 0;
  if (program.slice(0, operands).some(({ doubt }) => doubt !== "known")) return { kind: "unclear" };
  const inner = program.slice(operands);
  if (rule.appends === true) return { kind: "words", words: withInput(inner, options, appended), assignments };
  if (inner.length === 0) return { kind: rule.bare === undefined ? "unclear" : "bare" };
  if (rule.joins !== true) return { kind: "words", words: inner, assignments };
  const isKnown = inner.every(({ doubt }) => doubt === "known");
  const joined = knownWord(inner.map(({ text }) => text).join(" "));
  return isKnown ? { kind: "script", source: joined } : { kind: "unclear" };
}

/** The command line follows `-c` and the other options; without `-c` the shell reads a file or its input. */
function shellScript({ rest, letters }: Options): Unwrapped {
  const [source] = rest;
  return letters.includes("c") && source !== undefined ? { kind: "script", source } : { kind: "input" };
}

function withInput(
  inner: readonly ShellWord[],
  { letters, replaced }: Options,
  appended: ShellWord,
): readonly ShellWord[] {
  const words = inner.length === 0 ? [knownWord("echo")] : inner;
  if (replaced === undefined) return letters.includes("I") ? [] : [...words, appended];
  return words.map((word) => (word.text?.includes(replaced) === true ? appended : word));
}

function takeAssignments(
  { assignments: takes }: WrapperRule,
  words: readonly ShellWord[],
): { readonly assignments: readonly SyntaxAssignment[]; readonly rest: readonly ShellWord[] | null } {
  const assignments: SyntaxAssignment[] = [];
  if (takes !== true) return { assignments, rest: words };
  let at = 0;
  for (; at < words.length; at += 1) {
    const text = words[at]?.text ?? null;
    if (text === null) return { assignments, rest: null };
    const equals = text.indexOf("=");
    if (equals < 1) break;
    assignments.push({ name: text.slice(0, equals), value: knownWord(text.slice(equals + 1)) });
  }
  return { assignments, rest: words.slice(at) };
}

function readOptions(rule: WrapperRule, words: readonly ShellWord[]): Options | null {
  let letters = "";
  let replaced: string | undefined;
  for (let at = 0; at < words.length; at += 1) {
    const text = words[at]?.text ?? null;
    if (text === null || words[at]?.doubt !== "known" || !text.startsWith("-")) {
      return { rest: words.slice(at), letters, replaced };
    }
    if (text === "--") return { rest: words.slice(at + 1), letters, replaced };
    const option = text.startsWith("--") ? readLong(rule, text) : readCluster(rule, text);
    if (option === null || (option.takesNext && words[at + 1]?.doubt !== "known")) return null;
    letters += option.letters;
    const value = option.takesNext ? (words[at + 1]?.text ?? "") : option.value;
    if (option.letters.endsWith("I")) replaced = value;
    if (option.takesNext) at += 1;
  }
  return { rest: [], letters, replaced };
}

interface Option {
  readonly letters: string;
  readonly takesNext: boolean;
  readonly value: string;
}

function readLong({ longs = [], long_values: values = [] }: WrapperRule, text: string): Option | null {
  const equals = text.indexOf("=");
  const name = text.slice(2, equals === -1 ? undefined : equals);
  if (values.includes(name)) return { letters: "", takesNext: equals === -1, value: text.slice(equals + 1) };
  return longs.includes(name) && equals === -1 ? { letters: "", takesNext: false, value: "" } : null;
}

function readCluster({ flags = "", values = "", script, shows = "" }: WrapperRule, text: string): Option | null {
  if (text === "-") return null;
  for (let at = 1; at < text.length; at += 1) {
    const char = text[at] ?? "";
    const value = text.slice(at + 1);
    if (values.includes(char)) {
      if (script === true && value !== "") return null;
      return { letters: text.slice(1, at + 1), takesNext: value === "", value };
    }
    if (!flags.includes(char) && !shows.includes(char) && !(script === true && char === "c")) return null;
  }
  return { letters: text.slice(1), takesNext: false, value: "" };
}
