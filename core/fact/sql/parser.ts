import { init, Parser, ParserError } from "@guanmingchiu/sqlparser-ts";
import { loadModule, parseSync, SqlError } from "libpg-query";
import type { SqlDialect } from "../../action/action-fact.ts";
import { isJsonObject, type JsonObject } from "../../action/json.ts";

let areSound = true;

/** Loads both parsers. Resolves at once when called again. */
export async function loadSqlParsers(): Promise<void> {
  await Promise.all([loadModule(), init()]);
}

/**
 * Returns false once a parser has trapped or run out of stack: its memory is not to be relied on, and reads nothing any more.
 * Neither package can make a second instance, so a thread of its own has to be replaced.
 */
export function areSqlParsersSound(): boolean {
  return areSound;
}

/** The statements of PostgreSQL's own parser, or null where it refuses the text. The text is within the bounds of `readSqlTokens`. */
export function parsePostgresql(text: string): readonly JsonObject[] | null {
  const statements = guard(
    () => statementsOf((parseSync(text) as { readonly stmts?: unknown }).stmts ?? []),
    (error) => error instanceof SqlError,
  );
  return statements?.filter((each) => isJsonObject(each)) ?? null;
}

/** The statements of DataFusion's parser, or null where it refuses the text. The text is within the bounds of `readSqlTokens`. */
export function parseDialect(text: string, dialect: SqlDialect): readonly (JsonObject | string)[] | null {
  return guard(
    () => statementsOf(Parser.parse(text, dialect)),
    (error) => error instanceof ParserError && error.message.startsWith("sql parser error:"),
  );
}

function guard<T>(parse: () => T, isRefusal: (error: unknown) => boolean): T | null {
  if (!areSound) return null;
  try {
    return parse();
  } catch (error) {
    if (!isRefusal(error)) areSound = false;
    return null;
  }
}

function statementsOf(parsed: unknown): readonly (JsonObject | string)[] | null {
  return Array.isArray(parsed) && parsed.every((each) => isJsonObject(each) || typeof each === "string")
    ? parsed
    : null;
}
