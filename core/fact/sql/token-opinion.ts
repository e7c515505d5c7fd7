import { type ActionEffect, type SqlDialect, strictestEffect } from "../../action/action-fact.ts";
import { sqlFunctionEffect } from "./function-effect.ts";
import { joinName, type SqlOpinion } from "./opinion.ts";
import { isSign, type SqlToken } from "./token.ts";

type WordEffects = ReadonlyMap<string, ActionEffect>;

/** Words that change something wherever they stand outside quotes, in every dialect. */
const everywhere: Readonly<Partial<Record<ActionEffect, string>>> = {
  write: "insert update replace merge create alter grant revoke into",
  delete: "delete drop truncate",
  execute: "exec execute call load outfile dumpfile",
};

/** INVARIANT: a statement of SQL Server needs no semicolon before it, so that every word that can begin one counts. */
const inDialect: Readonly<Record<SqlDialect, Readonly<Partial<Record<ActionEffect, string>>>>> = {
  postgresql: {},
  mysql: { write: "lock share", unknown: "procedure delimiter handler prepare" },
  sqlite: { execute: "attach detach", unknown: "pragma vacuum reindex" },
  mssql: {
    write:
      "set use deny enable disable updlock xlock tablockx tablock holdlock serializable repeatableread updatetext writetext",
    execute:
      "waitfor shutdown backup restore dbcc bulk kill reconfigure receive send revert setuser openxml sp_executesql xp_cmdshell",
    network: "openrowset openquery opendatasource",
    unknown:
      "go declare print raiserror throw goto return while if begin deallocate fetch close open checkpoint add next",
  },
};

const effectsByWord = Object.fromEntries(
  Object.entries(inDialect).map(([dialect, own]) => [dialect, new Map([...wordsOf(everywhere), ...wordsOf(own)])]),
) as unknown as Readonly<Record<SqlDialect, WordEffects>>;

function wordsOf(
  effects: Readonly<Partial<Record<ActionEffect, string>>>,
): readonly (readonly [string, ActionEffect])[] {
  return Object.entries(effects).flatMap(([effect, words]) =>
    words.split(" ").map((each) => [each, effect as ActionEffect] as const),
  );
}

/** Kinds of statements that read, or whose words say all there is. Others are as strict as their words, and at least a write. */
const readingKinds = new Set(["select", "show", "explain", "begin", "commit", "rollback", "savepoint", "release"]);
const kindByWord: Readonly<Record<string, string>> = {
  values: "select",
  table: "select",
  desc: "explain",
  describe: "explain",
  start: "begin",
  end: "commit",
  exec: "execute",
  revoke: "grant",
  deny: "grant",
};
const mainVerbs = new Set(["select", "values", "insert", "update", "delete", "replace", "merge"]);
/** Names of functions in MySQL and others; a statement has no bracket behind these words. */
const alsoFunctions = new Set(["insert", "replace", "truncate", "if"]);

/**
 * The second opinion of those dialects for which there is one parser: what the words outside quotes and comments can mean at
 * the worst. It knows no grammar, so that no grammar can be turned against it.
 */
export function readTokens(statement: readonly SqlToken[], dialect: SqlDialect): SqlOpinion {
  const words = statement.filter((each) => !isSign(each, "("));
  const first = firstVerb(statement, words);
  const kind = kindByWord[first] ?? first;
  const isPlan =
    dialect !== "mssql" && (kind === "show" || (kind === "explain" && !words.some(({ text }) => text === "analyze")));
  const effects = isPlan
    ? [functionEffects(statement, dialect)]
    : [wordEffects(statement, dialect, kind), functionEffects(statement, dialect)];
  return {
    kind,
    effect: strictestEffect(readingKinds.has(kind) ? effects : ["write", ...effects]),
    read: new Set(),
    written: isPlan ? new Set() : writtenTables(statement),
    functions: new Set(),
    hasWhere: words.some(({ type, text }) => type === "word" && text === "where"),
    whereIsConstant: false,
    into: false,
    locking: false,
  };
}

/** The first word; after WITH the verb behind the common table expressions. */
function firstVerb(statement: readonly SqlToken[], words: readonly SqlToken[]): string {
  const [first] = words;
  if (first?.type !== "word") return "unknown";
  if (first.text !== "with") return first.text;
  let depth = 0;
  for (const token of statement) {
    if (isSign(token, "(")) depth += 1;
    else if (isSign(token, ")")) depth -= 1;
    else if (depth === 0 && token.type === "word" && mainVerbs.has(token.text)) return token.text;
  }
  return "unknown";
}

function wordEffects(statement: readonly SqlToken[], dialect: SqlDialect, kind: string): ActionEffect {
  const found = statement.map((token, at) => {
    if (token.type !== "word" || isSign(statement[at - 1], ".")) return "read";
    if (alsoFunctions.has(token.text) && isSign(statement[at + 1], "(") && at > 0) return "read";
    if (token.text === "begin" && kind === "begin" && isTransaction(statement, at)) return "read";
    if (dialect === "sqlite" && kind === "begin" && at === 1 && locksDatabase.has(token.text)) return "write";
    if (dialect === "mssql" && token.text === "next" && isFetch(statement, at)) return "read";
    if (dialect === "mssql" && token.text === "fetch" && isFetch(statement, at + 1)) return "read";
    return effectsByWord[dialect].get(token.text) ?? "read";
  });
  return strictestEffect(found);
}

/** SQLite's words behind `BEGIN` that keep every other writer out of the database. */
const locksDatabase = new Set(["immediate", "exclusive"]);

/** `BEGIN` alone opens a block in SQL Server. */
function isTransaction(statement: readonly SqlToken[], at: number): boolean {
  return at === 0 && ["tran", "transaction"].includes(statement[1]?.text ?? "");
}

/** `OFFSET 5 ROWS FETCH NEXT 5 ROWS ONLY`. */
function isFetch(statement: readonly SqlToken[], at: number): boolean {
  const [fetch, next, count, rows] = statement.slice(at - 1, at + 3);
  return (
    fetch?.text === "fetch" &&
    (next?.text === "next" || next?.text === "first") &&
    count !== undefined &&
    ["row", "rows"].includes(rows?.text ?? "")
  );
}

/** Effects of the functions that reach beyond a query; those that nobody knows are for the parser. */
function functionEffects(statement: readonly SqlToken[], dialect: SqlDialect): ActionEffect {
  return strictestEffect(
    statement.map((token, at) => {
      const isProcedure = dialect === "mssql" && /^(?:xp|sp)_/.test(token.text);
      if (!isProcedure && !isSign(statement[at + 1], "(")) return "read";
      if (token.type !== "word" && token.type !== "name") return "read";
      const effect = sqlFunctionEffect(token.text.toLowerCase(), dialect);
      return effect === "unknown" ? "read" : effect;
    }),
  );
}

/** Names behind INTO, UPDATE, DELETE FROM, TRUNCATE and DROP TABLE. */
function writtenTables(statement: readonly SqlToken[]): ReadonlySet<string> {
  const tables = new Set<string>();
  for (const [at, token] of statement.entries()) {
    if (token.type !== "word" || isSign(statement[at - 1], ".")) continue;
    const start = tableAfter(statement, at, token.text);
    const name = start === null ? "" : nameAt(statement, start);
    if (name !== "") tables.add(name);
  }
  return tables;
}

function tableAfter(statement: readonly SqlToken[], at: number, verb: string): number | null {
  const next = statement[at + 1]?.text ?? "";
  if (verb === "into")
    return next === "table" || next.startsWith("@") || next === "outfile" || next === "dumpfile" ? null : at + 1;
  if (verb === "update" && at === 0) return ["or", "ignore", "low_priority", "top"].includes(next) ? null : at + 1;
  if (verb === "delete" && at === 0 && next === "from") return at + 2;
  if (verb === "truncate" && at === 0) return next === "table" ? at + 2 : at + 1;
  return null;
}

function nameAt(statement: readonly SqlToken[], start: number): string {
  const parts: string[] = [];
  for (let at = start; at < statement.length; at += 2) {
    const token = statement[at];
    if (token?.type !== "word" && token?.type !== "name") break;
    parts.push(token.text.toLowerCase());
    if (!isSign(statement[at + 1], ".")) break;
  }
  return joinName(parts);
}
