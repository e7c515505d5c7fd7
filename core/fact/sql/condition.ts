/** An expression as far as it matters whether it holds for every row; null is anything else. */
export type Term =
  | { readonly value: string | number | boolean | null }
  | { readonly column: string }
  | { readonly operator: string; readonly terms: readonly (Term | null)[] }
  | null;

type Outcome = string | number | boolean | null | undefined;

/**
 * Returns true for a condition that holds for every row whose columns are not null: `1 = 1`, `true`, `id = id`,
 * `not false`, `x or 1`, `name like '%'`.
 */
export function holdsAlways(term: Term): boolean {
  return truth(outcomeOf(term)) === true;
}

/** The value of a term, the same for every row; undefined where rows differ. */
function outcomeOf(term: Term): Outcome {
  if (term === null) return undefined;
  if ("value" in term) return term.value;
  if ("column" in term) return undefined;
  return outcomeOfOperator(term.operator, term.terms);
}

function outcomeOfOperator(operator: string, terms: readonly (Term | null)[]): Outcome {
  const [left = null, right = null] = terms;
  if (operator === "and") return allOf(terms.map((each) => truth(outcomeOf(each))));
  if (operator === "or") return anyOf(terms.map((each) => truth(outcomeOf(each))));
  if (operator === "not") {
    const value = truth(outcomeOf(left));
    return value === undefined ? undefined : !value;
  }
  if (operator === "neg") return negate(outcomeOf(left));
  if (operator === "like" && isEverything(right)) return true;
  if (isSame(left, right)) return outcomeOfSame(operator);
  return compare(operator, outcomeOf(left), outcomeOf(right));
}

function negate(value: Outcome): Outcome {
  return typeof value === "number" ? -value : undefined;
}

function allOf(values: readonly (boolean | undefined)[]): Outcome {
  if (values.includes(false)) return false;
  return values.includes(undefined) ? undefined : true;
}

function anyOf(values: readonly (boolean | undefined)[]): Outcome {
  if (values.includes(true)) return true;
  return values.includes(undefined) ? undefined : false;
}

function isEverything(pattern: Term): boolean {
  return pattern !== null && "value" in pattern && typeof pattern.value === "string" && /^%+$/.test(pattern.value);
}

function isSame(left: Term, right: Term): boolean {
  return left !== null && right !== null && "column" in left && "column" in right && left.column === right.column;
}

/** A column compared with itself. */
function outcomeOfSame(operator: string): Outcome {
  if (["=", "<=", ">=", "like", "<=>"].includes(operator)) return true;
  return ["<>", "<", ">"].includes(operator) ? false : undefined;
}

function truth(value: Outcome): boolean | undefined {
  if (value === undefined || typeof value === "boolean") return value;
  if (value === null) return false;
  return typeof value === "number" ? value !== 0 : Number.parseFloat(value) !== 0 && /^\s*[-+]?\d/.test(value);
}

function compare(operator: string, left: Outcome, right: Outcome): Outcome {
  if (left === undefined || right === undefined) return undefined;
  if (left === null || right === null) return operator === "<=>" ? left === right : null;
  const [a, b] = typeof left === typeof right ? [left, right] : [Number(left), Number(right)];
  switch (operator) {
    case "=":
    case "<=>":
      return a === b;
    case "like":
      return a === b ? true : undefined;
    case "<>":
      return a !== b;
    case "<":
      return a < b;
    case ">":
      return a > b;
    case "<=":
      return a <= b;
    case ">=":
      return a >= b;
    default:
      return arithmetic(operator, Number(a), Number(b));
  }
}

function arithmetic(operator: string, a: number, b: number): Outcome {
  if (operator === "+") return a + b;
  if (operator === "-") return a - b;
  return operator === "*" ? a * b : undefined;
}
