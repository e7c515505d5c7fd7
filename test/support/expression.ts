import type { Phase } from "../../core/action/envelope.ts";
import type { Json } from "../../core/action/json.ts";
import { CelEngine, ExpressionError } from "../../core/policy/cel/engine.ts";
import { evaluationUnits } from "../../core/policy/cel/meter.ts";
import { ruleScope, type Scope, variablesOf } from "../../core/policy/cel/scope.ts";
import { recordShape, shapes } from "../../core/policy/cel/syntax.ts";
import { makeAction } from "./action.ts";

export const samplePack = { settings: { limit: 3, paths: ["/etc/*"] }, data: { names: { ada: true } } };

/** What an expression of a small pack may name. */
export function scopeOf(phases: readonly Phase[]): Scope {
  return ruleScope(
    phases,
    recordShape({ limit: shapes.json, paths: shapes.json }),
    recordShape({ names: shapes.json }),
  );
}

/** The value of an expression for an action with these arguments, or the message of its ExpressionError. */
export function evaluate(text: string, args: Json = {}): unknown {
  const engine = new CelEngine();
  const compiled = engine.compile(text, scopeOf(["input"]));
  if ("faults" in compiled) throw new TypeError(`${text}: ${compiled.faults[0]?.message}`);
  engine.meter.left = evaluationUnits;
  const action = makeAction({ arguments: args });
  try {
    return compiled.expression.evaluate(variablesOf(action, samplePack));
  } catch (error) {
    if (error instanceof ExpressionError) return error.message;
    throw error;
  }
}
