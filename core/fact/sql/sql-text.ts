import {
  type ActionEffect,
  type SqlDialect,
  type SqlFacts,
  type SqlStatement,
  strictestEffect,
} from "../../action/action-fact.ts";
import { doAgree, effectOf } from "./agreement.ts";
import { readDialectTree } from "./dialect-tree.ts";
import type { SqlOpinion } from "./opinion.ts";
import { parseDialect, parsePostgresql } from "./parser.ts";
import { readPostgresqlTree } from "./postgresql-tree.ts";
import { readPragma } from "./pragma.ts";
import { readSqlTokens, type SqlToken, splitStatements } from "./token.ts";
import { readTokens } from "./token-opinion.ts";

export { loadSqlParsers } from "./parser.ts";

const maxListed = 20;
const maxName = 256;

/** The opinions of both readers; null for a reader that could not read the text. */
export interface SqlReading {
  readonly first: readonly SqlOpinion[] | null;
  readonly second: readonly SqlOpinion[] | null;
}

/**
 * Reads statements of a dialect. Never throws. The effect is `unknown` without a dialect, before `loadSqlParsers` resolves, for
 * a text that is odd, too long or too deep, and where two readers do not find the same.
 */
export function readSql(text: string, dialect: SqlDialect | null): SqlFacts {
  const { first, second } = dialect === null ? { first: null, second: null } : readTwice(text, dialect);
  if (first === null || first.length === 0)
    return { parsed: false, dialect, effect: "unknown", statements: [], more: true };
  const isAgreed = second !== null && doAgree(first, second);
  const statements = first.slice(0, maxListed).map((each, at) => statementOf(each, isAgreed ? second[at] : undefined));
  return {
    parsed: isAgreed,
    dialect,
    effect: isAgreed ? strictestEffect([effectOf(first), effectOf(second)]) : "unknown",
    statements,
    more: first.length > maxListed || first.some((each) => isCut(each)),
  };
}

/** The two opinions that `readSql` compares. */
export function readTwice(text: string, dialect: SqlDialect): SqlReading {
  const tokens = readSqlTokens(text, dialect);
  const statements = tokens === null ? [] : splitStatements(tokens);
  if (statements.length === 0) return { first: null, second: null };
  if (dialect === "postgresql") return readPostgresqlTwice(text, statements.length);
  const pragma = dialect === "sqlite" && statements.length === 1 ? readPragma(statements[0] ?? []) : null;
  if (pragma !== null) return { first: [pragma], second: [pragma] };
  const first = parseDialect(text, dialect)?.map((each) => readDialectTree(each, dialect)) ?? null;
  return { first, second: readAllTokens(statements, dialect) };
}

function readPostgresqlTwice(text: string, count: number): SqlReading {
  const first = parsePostgresql(text)?.map((each) => readPostgresqlTree(each)) ?? null;
  if (first === null || first.length !== count) return { first, second: null };
  const second = parseDialect(text, "postgresql")?.map((each) => readDialectTree(each, "postgresql")) ?? null;
  return { first, second };
}

function readAllTokens(statements: readonly (readonly SqlToken[])[], dialect: SqlDialect): readonly SqlOpinion[] {
  return statements.map((each) => readTokens(each, dialect));
}

/** INVARIANT: a statement that only one reader takes for reading is not called reading. */
function statementOf(one: SqlOpinion, other: SqlOpinion | undefined): SqlStatement {
  return {
    kind: one.kind,
    effect: other === undefined ? atLeastUnknown(one.effect) : strictestEffect([one.effect, other.effect]),
    tables: { read: listed(one.read), write: listed(one.written) },
    functions: listed(one.functions),
    has_where: one.hasWhere,
    where_is_constant: one.whereIsConstant,
    into: one.into,
    locking: one.locking,
  };
}

function atLeastUnknown(effect: ActionEffect): ActionEffect {
  return effect === "read" ? "unknown" : effect;
}

function listed(names: ReadonlySet<string>): readonly string[] {
  return [...names].slice(0, maxListed).map((each) => each.slice(0, maxName));
}

function isCut({ read, written, functions }: SqlOpinion): boolean {
  return [read, written, functions].some(
    (names) => names.size > maxListed || [...names].some((each) => each.length > maxName),
  );
}
