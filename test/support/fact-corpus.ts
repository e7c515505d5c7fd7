import { readFileSync } from "node:fs";
import { join } from "node:path";
import { parse } from "yaml";
import { repositoryRoot } from "../check/source-tree.ts";

/** One labelled input of `test/corpus/fact`. */
export interface FactEntry {
  readonly input: string;
  /** `near`: honest, and similar to what is harmful. */
  readonly label: "harmful" | "near";
  readonly why: string;
  readonly source?: string;
}

export function factCorpus(kind: string): readonly FactEntry[] {
  return parse(readFileSync(join(repositoryRoot, `test/corpus/fact/${kind}.yaml`), "utf8")) as readonly FactEntry[];
}
