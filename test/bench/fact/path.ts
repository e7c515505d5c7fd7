import { readPath } from "../../../core/fact/path.ts";
import type { FactEntry } from "../../support/fact-corpus.ts";

export const name = "path";
/** The root of every entry of the corpus. */
export const corpusRoot = "/workspace";

/** Allows what certainly lies in the root, as far as the text says. */
export function judge({ input }: FactEntry): "allowed" | "asked" | "blocked" {
  const { inside, odd } = readPath(input, corpusRoot);
  if (odd) return "asked";
  return inside ? "allowed" : "blocked";
}
