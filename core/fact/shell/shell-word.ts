import type { DoubleQuotedChild, Word, WordPart } from "unbash";
import { isOddText } from "./odd-text.ts";

/**
 * The certainty of a word, best first. `known`: its text is what the program gets. `names`: one or more names of files, or digits;
 * never a flag where it does not begin with a pattern. `output`: text that judged commands print, or a plain variable of the
 * shell. `computed`: anything.
 */
export const wordDoubts = ["known", "names", "output", "computed"] as const;
export type WordDoubt = (typeof wordDoubts)[number];

export interface ShellWord {
  /** Null where it is computed. A pattern of file names is kept as written. */
  readonly text: string | null;
  readonly doubt: WordDoubt;
}

/** The variables of a line: loop variables stand for one of the words of the loop, all others are computed. */
export interface VariableScope {
  readonly loops: ReadonlySet<string>;
  readonly assigned: ReadonlySet<string>;
}

export function knownWord(text: string): ShellWord {
  return { text, doubt: "known" };
}

export const computedWord: ShellWord = { text: null, doubt: "computed" };

const braces = /^([\w./-]*)\{([\w./-]*(?:,[\w./-]*){1,15})\}([\w./-]*)$/;
const range = /^\{\d{1,4}\.\.\d{1,4}\}$/;

/** Returns the word with its quotes undone: several for a plain `{a,b}`. */
export function readWords(word: Word, scope: VariableScope): readonly ShellWord[] {
  if (word.parts?.some((part) => part.type === "BraceExpansion") !== true) return [readWord(word, scope)];
  if (range.test(word.text)) return [{ text: null, doubt: "names" }];
  const [, before = "", list = "", after = ""] = braces.exec(word.text) ?? [];
  return list === "" ? [computedWord] : list.split(",").map((item) => knownWord(before + item + after));
}

export function readWord(word: Word, scope: VariableScope): ShellWord {
  const parts = word.parts ?? [];
  if (parts.length === 0) return isOddText(word.value) ? computedWord : knownWord(word.value);
  const hasGlob = parts.some(({ type }) => type === "Glob");
  const read = joinWords(parts.map((part) => readPart(part, scope)));
  if (read.text !== null && isOddText(read.text)) return computedWord;
  if (!hasGlob) return read;
  return read.text !== null && isPlainPattern(read.text) ? { text: read.text, doubt: "names" } : computedWord;
}

function joinWords(parts: readonly ShellWord[]): ShellWord {
  const rank = Math.max(0, ...parts.map(({ doubt }) => wordDoubts.indexOf(doubt)));
  const isText = parts.every(({ text }) => text !== null);
  return { text: isText ? parts.map(({ text }) => text).join("") : null, doubt: wordDoubts[rank] ?? "computed" };
}

function readPart(part: WordPart | DoubleQuotedChild, scope: VariableScope): ShellWord {
  switch (part.type) {
    case "Literal":
    case "SingleQuoted":
    case "Glob":
      return knownWord(part.value);
    case "AnsiCQuoted":
      // A shell without this quoting ends the text at the quote.
      return part.text.includes("\\'") ? computedWord : knownWord(part.value);
    case "DoubleQuoted":
      return joinWords(part.parts.map((child) => readPart(child, scope)));
    case "SimpleExpansion":
      return readVariable(part.text.slice(1), scope);
    case "ParameterExpansion":
      if (part.index !== undefined || part.operation !== undefined) return computedWord;
      if (part.prefix === "#") return { text: null, doubt: "names" };
      return part.prefix === undefined ? readVariable(part.parameter, scope) : computedWord;
    case "CommandExpansion":
      return part.script === undefined ? computedWord : { text: null, doubt: "output" };
    case "ProcessSubstitution":
      return part.script === undefined ? computedWord : { text: null, doubt: "names" };
    case "ArithmeticExpansion":
      return isPlainArithmetic(part.text) ? { text: null, doubt: "names" } : computedWord;
    default:
      return computedWord;
  }
}

const places: ReadonlyMap<string, string> = new Map([
  ["HOME", "~"],
  ["PWD", "."],
]);
const numbers = new Set(["?", "#", "$", "!"]);
const plain = new Set([
  "USER",
  "LOGNAME",
  "HOSTNAME",
  "SHELL",
  "UID",
  "EUID",
  "PPID",
  "RANDOM",
  "SECONDS",
  "LINENO",
  "TERM",
]);

function readVariable(name: string, { loops, assigned }: VariableScope): ShellWord {
  if (numbers.has(name)) return { text: `$${name}`, doubt: "names" };
  if (assigned.has(name)) return computedWord;
  if (loops.has(name)) return { text: null, doubt: "names" };
  const place = places.get(name);
  if (place !== undefined) return knownWord(place);
  return plain.has(name) ? { text: null, doubt: "output" } : computedWord;
}

/** Arithmetic of numbers alone: a name in it is evaluated, and may hold a command. */
export function isPlainArithmetic(text: string): boolean {
  return /^\$?\(\([\s\d+\-*/%()<>=!&|^~?:,]*\)\)$/.test(text);
}

/**
 * A pattern that stays in the folder it names and cannot spell a hidden or an absolute name: `*.ts`, `src/**`, `test*.js`, also
 * as the value of a long option.
 */
function isPlainPattern(word: string): boolean {
  const text = word.replace(/^--[a-z-]+=/, "");
  if (/[?[\]~]/.test(text) || text.startsWith("/") || text.startsWith("-")) return false;
  return (
    text
      .split("/")
      .every(
        (name) =>
          !name.includes("*") ||
          /^(?:\*\*?|\*[\w-]*\.[\w.*-]+|[A-Za-z0-9_-]+\*\.[\w.]+|[A-Za-z0-9_-]+\.\*\.?[\w.]*|\*[\w-]+\*?)$/.test(name),
      ) && !text.split("/").includes("..")
  );
}
