import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { repositoryRoot } from "../../check/source-tree.ts";
import type { Random } from "../../support/fuzz.ts";

/** A parser of what strangers write. */
export interface Subject {
  readonly seeds: readonly Buffer[];
  /** What means something to the parser. */
  readonly words: readonly string[];
  /** How much dearer an input is than one of the others, so that all take about as long. */
  readonly price?: number;
  /**
   * Reads an input. Returns `accepted`, or why it was refused, by an error that is meant for that. Throws where it was accepted
   * though it says something else than what was read.
   */
  readonly read: (input: Buffer, random: Random) => string | Promise<string>;
}

/** The outcome of an input that a parser takes. */
export const accepted = "accepted";
export const refused = "refused";

/** Returns what a call returns, or why it refused where it throws the error of a refusal. */
export function unlessRefused(refusal: new (...args: never[]) => Error, read: () => string): string {
  try {
    return read();
  } catch (error) {
    return reasonOf(refusal, error);
  }
}

/** Returns the kind of a refusal: its message without numbers and quoted text. Throws every other error. */
export function reasonOf(refusal: new (...args: never[]) => Error, error: unknown): string {
  if (!(error instanceof refusal)) throw error;
  const [line = ""] = error.message.split("\n").slice(error.message.startsWith("`") ? 1 : 0);
  return (line || error.message)
    .replace(/`[^`]*`|'[^']*'|"[^"]*"/g, "…")
    .replace(/\d+/g, "#")
    .slice(0, 120);
}

/** Returns the files below a folder whose names end so. */
export function folder(path: string, ending: string): readonly Buffer[] {
  const names = readdirSync(join(repositoryRoot, path), { recursive: true, encoding: "utf8" });
  return names.filter((name) => name.endsWith(ending)).map((name) => readFileSync(join(repositoryRoot, path, name)));
}
