import type { SqlDialect } from "../../../core/action/action-fact.ts";
import { loadSqlParsers, readSql } from "../../../core/fact/sql/sql-text.ts";
import type { FactEntry } from "../../support/fact-corpus.ts";

export const name = "sql";

await loadSqlParsers();

/** Allows what certainly only reads, and asks where nobody can tell. */
export function judge({
  input,
  dialect,
}: FactEntry & { readonly dialect?: SqlDialect }): "allowed" | "asked" | "blocked" {
  const { effect } = readSql(input, dialect ?? null);
  if (effect === "unknown") return "asked";
  return effect === "read" ? "allowed" : "blocked";
}
