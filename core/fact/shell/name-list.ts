import type { EffectTable } from "../effect-table.ts";
import type { SyntaxCommand } from "./shell-syntax.ts";

const grepPrograms = new Set(["grep", "egrep", "fgrep", "rg"]);
/** Programs whose output is some of the lines of their input. */
const filters = new Set(["grep", "egrep", "fgrep", "head", "tail", "sort", "uniq"]);
const gitLists = new Set(["diff", "diff-tree", "diff-index", "diff-files", "grep"]);

/** Returns true where every line that the command prints is the name of a file. */
export function printsNames({ words, from }: SyntaxCommand, table: EffectTable): boolean {
  const [name = "", second = "", ...rest] = words.map(({ text }) => text ?? "");
  const options = [second, ...rest].filter((text) => text.startsWith("-"));
  if (from !== undefined)
    return filters.has(name) && !options.some((text) => changesLines(text)) && printsNames(from, table);
  if (grepPrograms.has(name)) return options.some((text) => /^-[a-zA-Z]*l|^--files/.test(text));
  if (name !== "git") return name === "ls" || table.programs.get(name)?.lists === true;
  if (second === "ls-files") return true;
  return gitLists.has(second) && rest.some((text) => text === "--name-only" || (second === "grep" && text === "-l"));
}

/** Counts, line numbers, and parts of lines. */
function changesLines(option: string): boolean {
  return (
    /^-[a-zA-Z]*[cnobHZ]|^--(?:count|line|only|byte|with-filename|null|color|colour)/.test(option) &&
    !/^-n\d*$/.test(option)
  );
}
