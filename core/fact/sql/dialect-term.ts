import { isJsonObject, type Json, type JsonObject } from "../../action/json.ts";
import type { Term } from "./condition.ts";

/** Returns the condition of an expression of DataFusion's tree. */
export function dialectTerm(node: Json | undefined): Term {
  if (!isJsonObject(node)) return null;
  const [type = "", body] = Object.entries(node)[0] ?? [];
  return body === undefined ? null : (readers[type]?.(body) ?? null);
}

const readers: Readonly<Record<string, (body: Json) => Term>> = {
  Value: constantOf,
  Identifier: (body) => columnOf([body]),
  CompoundIdentifier: (body) => columnOf(Array.isArray(body) ? body : []),
  Nested: dialectTerm,
  IsTrue: dialectTerm,
  IsNull: (body) => nullTestOf(body, true),
  IsNotNull: (body) => nullTestOf(body, false),
  BinaryOp: (body) => (isJsonObject(body) ? binaryOf(body) : null),
  UnaryOp: (body) => (isJsonObject(body) ? unaryOf(body) : null),
  Like: (body) => (isJsonObject(body) ? likeOf(body) : null),
  ILike: (body) => (isJsonObject(body) ? likeOf(body) : null),
  InList: (body) => (isJsonObject(body) ? inListOf(body) : null),
  Between: (body) => (isJsonObject(body) ? betweenOf(body) : null),
  Cast: (body) => (isJsonObject(body) ? dialectTerm(body.expr) : null),
};

function constantOf(body: Json): Term {
  const value = isJsonObject(body) ? body.value : undefined;
  if (value === "Null") return { value: null };
  if (!isJsonObject(value)) return null;
  const { Number: digits, Boolean: truth, SingleQuotedString: single, DoubleQuotedString: double } = value;
  if (Array.isArray(digits)) return { value: Number(digits[0]) };
  if (typeof truth === "boolean") return { value: truth };
  const text = single ?? double ?? value.NationalStringLiteral;
  return typeof text === "string" ? { value: text } : null;
}

/** SQLite and MySQL know `true` as a name too. */
function columnOf(parts: readonly Json[]): Term {
  const names = parts.map((each) => (isJsonObject(each) ? String(each.value).toLowerCase() : ""));
  if (names.length === 1 && (names[0] === "true" || names[0] === "false")) return { value: names[0] === "true" };
  return { column: names.join(".") };
}

const signs: Readonly<Record<string, string>> = {
  And: "and",
  Or: "or",
  Eq: "=",
  NotEq: "<>",
  Lt: "<",
  Gt: ">",
  LtEq: "<=",
  GtEq: ">=",
  Spaceship: "<=>",
  Plus: "+",
  Minus: "-",
  Multiply: "*",
};

function binaryOf({ left, op, right }: JsonObject): Term {
  const operator = signs[String(op)];
  return operator === undefined ? null : { operator, terms: [dialectTerm(left), dialectTerm(right)] };
}

function unaryOf({ op, expr }: JsonObject): Term {
  if (op === "Not" || op === "BangNot") return { operator: "not", terms: [dialectTerm(expr)] };
  return op === "Minus" ? { operator: "neg", terms: [dialectTerm(expr)] } : null;
}

function likeOf({ negated, expr, pattern }: JsonObject): Term {
  return negated === true ? null : { operator: "like", terms: [dialectTerm(expr), dialectTerm(pattern)] };
}

function inListOf({ negated, expr, list }: JsonObject): Term {
  if (negated === true || !Array.isArray(list)) return null;
  return {
    operator: "or",
    terms: list.map((each) => ({ operator: "=", terms: [dialectTerm(expr), dialectTerm(each)] })),
  };
}

function betweenOf({ negated, expr, low, high }: JsonObject): Term {
  if (negated === true) return null;
  const term = dialectTerm(expr);
  return {
    operator: "and",
    terms: [
      { operator: ">=", terms: [term, dialectTerm(low)] },
      { operator: "<=", terms: [term, dialectTerm(high)] },
    ],
  };
}

function nullTestOf(body: Json, isNull: boolean): Term {
  const term = dialectTerm(body);
  return term === null || !("value" in term) ? null : { value: (term.value === null) === isNull };
}
