import { isJsonObject, type Json, type JsonObject } from "../../action/json.ts";
import type { Term } from "./condition.ts";

/** Returns the condition of a node of PostgreSQL's parse tree. */
export function postgresqlTerm(node: Json | undefined): Term {
  if (!isJsonObject(node)) return null;
  const [type = "", body] = Object.entries(node)[0] ?? [];
  return isJsonObject(body) ? (readers[type]?.(body) ?? null) : null;
}

const readers: Readonly<Record<string, (body: JsonObject) => Term>> = {
  A_Const: constantOf,
  ColumnRef: columnOf,
  BoolExpr: boolOf,
  A_Expr: operatorOf,
  TypeCast: ({ arg }) => postgresqlTerm(arg),
  CollateClause: ({ arg }) => postgresqlTerm(arg),
  BooleanTest: ({ arg, booltesttype }) => (booltesttype === "IS_TRUE" ? postgresqlTerm(arg) : null),
  NullTest: nullTestOf,
};

function constantOf({ ival, sval, boolval, fval, isnull }: JsonObject): Term {
  if (isJsonObject(ival)) return { value: Number(ival.ival ?? 0) };
  if (isJsonObject(fval)) return { value: Number(fval.fval ?? 0) };
  if (isJsonObject(boolval)) return { value: boolval.boolval === true };
  if (isJsonObject(sval)) return { value: textOrBoolean(String(sval.sval ?? "")) };
  return isnull === true ? { value: null } : null;
}

/** `where 't'` is true: a text without a type takes the one that the place asks for. */
function textOrBoolean(text: string): string | boolean {
  return /^\s*(?:t|true|y|yes|on)\s*$/i.test(text) ? true : text;
}

function columnOf({ fields }: JsonObject): Term {
  const names = (Array.isArray(fields) ? fields : []).map((each) => nameOf(each));
  return names.includes(null) ? null : { column: names.join(".") };
}

function nameOf(node: Json): string | null {
  const text = isJsonObject(node) && isJsonObject(node.String) ? node.String.sval : null;
  return typeof text === "string" ? text : null;
}

const boolOperators: Readonly<Record<string, string>> = { AND_EXPR: "and", OR_EXPR: "or", NOT_EXPR: "not" };

function boolOf({ boolop, args }: JsonObject): Term {
  const operator = boolOperators[String(boolop)];
  return operator === undefined ? null : { operator, terms: termsOf(args) };
}

function termsOf(list: Json | undefined): readonly Term[] {
  return Array.isArray(list) ? list.map((each) => postgresqlTerm(each)) : [];
}

function operatorOf({ kind, name, lexpr, rexpr }: JsonObject): Term {
  const sign = Array.isArray(name) && name.length === 1 ? nameOf(name[0] ?? null) : null;
  if (sign === null) return null;
  const left = postgresqlTerm(lexpr);
  const items = isJsonObject(rexpr) && isJsonObject(rexpr.List) ? termsOf(rexpr.List.items) : [];
  if (kind === "AEXPR_IN" && sign === "=") {
    return { operator: "or", terms: items.map((each) => ({ operator: "=", terms: [left, each] })) };
  }
  if (kind === "AEXPR_BETWEEN") return betweenOf(left, items);
  if (kind === "AEXPR_NOT_DISTINCT") return { operator: "<=>", terms: [left, postgresqlTerm(rexpr)] };
  if (kind === "AEXPR_LIKE" || kind === "AEXPR_ILIKE") {
    return sign.startsWith("!") ? null : { operator: "like", terms: [left, postgresqlTerm(rexpr)] };
  }
  if (kind !== "AEXPR_OP") return null;
  if (lexpr === undefined) return sign === "-" ? { operator: "neg", terms: [postgresqlTerm(rexpr)] } : null;
  return { operator: sign, terms: [left, postgresqlTerm(rexpr)] };
}

function betweenOf(term: Term, [low = null, high = null]: readonly Term[]): Term {
  return {
    operator: "and",
    terms: [
      { operator: ">=", terms: [term, low] },
      { operator: "<=", terms: [term, high] },
    ],
  };
}

function nullTestOf({ arg, nulltesttype }: JsonObject): Term {
  const term = postgresqlTerm(arg);
  if (term === null || !("value" in term)) return null;
  return { value: (term.value === null) === (nulltesttype === "IS_NULL") };
}
