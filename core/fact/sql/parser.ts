import { readFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { compileFunction } from "node:vm";
import type { SqlDialect } from "../../action/action-fact.ts";
import { isJsonObject, type JsonObject } from "../../action/json.ts";
import { loadAnew, ParserInstance } from "../parser-instance.ts";

type PostgresqlParser = typeof import("libpg-query");

/** The parts of `@guanmingchiu/sqlparser-ts` that are used. */
interface DialectParser {
  readonly load: (source: { readonly module_or_path: Uint8Array }) => Promise<unknown>;
  readonly parse_sql: (dialect: string, text: string) => unknown;
}

const postgresql = new ParserInstance<PostgresqlParser>(makePostgresql);
const dialects = new ParserInstance<DialectParser>(makeDialects);

/** Loads both parsers. Resolves at once when called again. */
export async function loadSqlParsers(): Promise<void> {
  await Promise.all([postgresql.load(), dialects.load()]);
}

async function makePostgresql(): Promise<PostgresqlParser> {
  const parser = loadAnew("libpg-query") as PostgresqlParser;
  await parser.loadModule();
  return parser;
}

/**
 * INVARIANT: each call has a state of its own. The package makes one instance, and the engine loads a module once, so that its code
 * is compiled here; the version is pinned.
 */
async function makeDialects(): Promise<DialectParser> {
  const main = createRequire(import.meta.url).resolve("@guanmingchiu/sqlparser-ts");
  const folder = join(dirname(main), "../wasm");
  const source = await readFile(join(folder, "sqlparser_rs_wasm.js"), "utf8");
  const plain = source
    .replace(/^export (?=function )/gm, "")
    .replace(/^export \{.*$/m, "return { parse_sql, load: __wbg_init };")
    .replaceAll("import.meta.url", "undefined");
  const parser = compileFunction(plain)() as DialectParser;
  await parser.load({ module_or_path: await readFile(join(folder, "sqlparser_rs_wasm_bg.wasm")) });
  return parser;
}

/** The statements of PostgreSQL's own parser, or null where it refuses the text. The text is within the bounds of `readSqlTokens`. */
export function parsePostgresql(text: string): readonly JsonObject[] | null {
  const statements = postgresql.use(
    ({ parseSync }) => statementsOf((parseSync(text) as { readonly stmts?: unknown }).stmts ?? []),
    (error, { SqlError }) => error instanceof SqlError,
  );
  return statements?.filter((each) => isJsonObject(each)) ?? null;
}

/** The statements of DataFusion's parser, or null where it refuses the text. The text is within the bounds of `readSqlTokens`. */
export function parseDialect(text: string, dialect: SqlDialect): readonly (JsonObject | string)[] | null {
  return dialects.use(({ parse_sql: parse }) => statementsOf(parse(dialect, text)), isDialectRefusal);
}

/** The parser throws objects and texts that are no errors; the engine's are traps. */
function isDialectRefusal(error: unknown): boolean {
  if (error instanceof Error) return false;
  const message = typeof error === "string" ? error : (error as { readonly message?: unknown } | null)?.message;
  return typeof message === "string" && message.startsWith("sql parser error:");
}

function statementsOf(parsed: unknown): readonly (JsonObject | string)[] | null {
  return Array.isArray(parsed) && parsed.every((each) => isJsonObject(each) || typeof each === "string")
    ? parsed
    : null;
}
