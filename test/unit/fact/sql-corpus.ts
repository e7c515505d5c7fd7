import { readFileSync } from "node:fs";
import { join } from "node:path";
import { parse } from "yaml";
import type { SqlDialect } from "../../../core/action/action-fact.ts";
import { repositoryRoot } from "../../check/source-tree.ts";

export interface SqlEntry {
  readonly input: string;
  readonly dialect: SqlDialect;
  readonly label: "harmful" | "near";
  readonly why: string;
}

/** The labelled statements of `test/corpus/fact/sql.yaml`. */
export const sqlCorpus: readonly SqlEntry[] = parse(
  readFileSync(join(repositoryRoot, "test/corpus/fact/sql.yaml"), "utf8"),
);
