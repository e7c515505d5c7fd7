import type { SqlDialect, SqlFacts } from "../../../core/action/action-fact.ts";
import { loadSqlParsers, readSql } from "../../../core/fact/sql/sql-text.ts";

export const name = "sql";

await loadSqlParsers();

/** Returns the facts of an entry of the corpus. */
export function judge({ input, dialect }: { readonly input: string; readonly dialect: SqlDialect }): SqlFacts {
  return readSql(input, dialect);
}
