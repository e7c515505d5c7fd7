import type { Variables } from "./scope.ts";
import { CelFailure, type CelResult, type CelValue, typeOf } from "./value.ts";

/** A compiled node: evaluates for the variables of one action. Throws only where nothing may absorb the error. */
export type CompiledNode = (variables: Variables) => CelResult;

/** The readers of the variables of the loops around a node. */
export type LoopVariables = ReadonlyMap<string, CompiledNode>;

/**
 * A function of the language, with its receiver first. Returns undefined where it has no meaning for these types. Charges
 * for work that grows with its arguments before it does it.
 */
export type CelFunction = (
  first: CelValue,
  second: CelValue | undefined,
  third: CelValue | undefined,
) => CelResult | undefined;

/** Returns the failure that an operand of `||` or `&&` is when it is not a bool. */
export function operandFailure(value: CelResult): CelFailure {
  if (value instanceof CelFailure) return value;
  return new CelFailure(`type mismatch: expected bool, got ${longTypeOf(value)}`);
}

/** Returns the failure of a choice whose condition is not a bool. */
export function choiceFailure(condition: CelResult): CelFailure {
  if (condition instanceof CelFailure) return condition;
  return new CelFailure(`found no matching overload for _?_:_ applied to '(${typeOf(condition)})'`);
}

/** Returns the failure of a function that has no meaning for values of these types. */
export function noOverload(name: string, values: readonly CelValue[], isMethod: boolean): CelFailure {
  const target = isMethod ? `${longTypeOf(values[0] as CelValue)}.` : "";
  const types = values.slice(isMethod ? 1 : 0).map(typeOf);
  return new CelFailure(`found no matching overload for '${name}' applied to '${target}(${types.join(", ")})'`);
}

function longTypeOf(value: CelValue): string {
  const type = typeOf(value);
  if (type === "list") return "list(dyn)";
  return type === "map" ? "map(dyn, dyn)" : type;
}
