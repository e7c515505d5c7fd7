import type { ShellWord } from "./shell-word.ts";

/** Returns the folder that `cd` with these words leads to; empty, as where a line begins, where that is not known. */
export function folderAfter(folder: string, words: readonly ShellWord[]): string {
  const operands = words.filter(({ text }) => text === null || !/^-[A-Za-z]|^--$/.test(text));
  const [{ text, doubt } = { text: "~", doubt: "known" as const }] = operands;
  return text === null || doubt !== "known" || text === "-" ? "" : pathFrom(folder, text);
}

/** Returns the path as reached from where the line begins, `..` in it undone. What only follows a symbolic link is not seen. */
export function pathFrom(folder: string, path: string): string {
  const isRooted = /^[/~]/.test(path);
  const joined = isRooted || folder === "" ? path : `${folder}/${path}`;
  if (joined === path && !/\.\.|\/\/|\/\.(?:\/|$)/.test(path)) return path;
  const kept: string[] = [];
  for (const segment of joined.split("/")) {
    if (segment === "." || (segment === "" && kept.length > 0)) continue;
    const before = kept.at(-1);
    if (segment !== ".." || before === undefined || before === ".." || before.startsWith("~")) kept.push(segment);
    else if (before !== "") kept.pop();
  }
  return kept.length === 1 && kept[0] === "" ? "/" : kept.join("/") || ".";
}
