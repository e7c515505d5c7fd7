import { type CelEnv, type CelValue, celEnv, isCelError, parse, plan } from "@bufbuild/cel";
import { showText } from "../../action/visible-text.ts";
import { checkExpression } from "./check.ts";
import { LeafCache, meteredFunctions } from "./function.ts";
import { evaluationUnits, Meter } from "./meter.ts";
import { PatternCache } from "./pattern.ts";
import type { Scope, Variables } from "./scope.ts";
import {
  type Call,
  type Comprehension,
  countNodes,
  type Expr,
  type ExpressionFault,
  isExpressionFault,
  parseExpression,
  type Shape,
} from "./syntax.ts";

/** An expression that could not be evaluated for one action. Its message is safe to record. */
export class ExpressionError extends Error {
  override readonly name = "ExpressionError";
}

/** One checked expression of a pack. */
export interface Expression {
  readonly text: string;
  readonly shape: Shape;
  /** Evaluates for one action. Throws ExpressionError; bounded by the engine's work budget. */
  evaluate(variables: Variables): CelValue;
}

type Compiled = { readonly expression: Expression } | { readonly faults: readonly ExpressionFault[] };

/** Compiles and runs the expressions of one pack. Not re-entrant: one action at a time, synchronously. */
export class CelEngine {
  readonly #meter = new Meter();
  readonly #patterns = new PatternCache();
  readonly #leaves = new LeafCache();
  readonly #env: CelEnv = celEnv({ funcs: meteredFunctions(this.#meter, this.#patterns, this.#leaves) });
  readonly #timestamp = this.prepare(parse("timestamp(text)").expr);

  /** Grants the next action its whole budget and clears what was cached for the previous one. */
  refill(): void {
    this.#meter.left = evaluationUnits;
    this.#leaves.byValue = new Map();
  }

  compile(text: string, scope: Scope): Compiled {
    const parsed = parseExpression(text);
    if (isExpressionFault(parsed)) return { faults: [parsed] };
    const { faults, shape } = checkExpression(parsed, scope, this.#patterns);
    if (faults.length > 0) return { faults };
    return { expression: { text, shape, evaluate: this.prepare(parsed.root) } };
  }

  /** Prepares a node of an expression that compiled here; it evaluates as it would inside that expression. */
  prepare(node: Expr): Expression["evaluate"] {
    const run = plan(this.#env, instrument(node));
    const meter = this.#meter;
    return (variables) => {
      const result: unknown = run(variables);
      // Checked first: `||` may have swallowed the error that stopped a loop.
      if (meter.left < 0) throw new ExpressionError("the expression spent more work than one evaluation may");
      if (isCelError(result)) throw new ExpressionError(showText(result.message));
      return result as CelValue;
    };
  }

  /** True once the budget of this action is spent: nothing more can be evaluated. */
  get isSpent(): boolean {
    return this.#meter.left < 0;
  }

  /** Converts an RFC 3339 time to a CEL timestamp. */
  timestamp(text: string): CelValue {
    return this.#timestamp({ text });
  }
}

/**
 * Makes the loops of an expression pay: each comprehension iterates over `@range(range)`, calls `@step(n)` before every
 * iteration (`n` is the number of nodes that one evaluates) and collects lists with `@list` and `@append`.
 * A pack cannot write these names: `@` is not a character of the language.
 */
function instrument(node: Expr): Expr {
  const { exprKind: kind } = node;
  if (kind.case === "selectExpr" && kind.value.operand !== undefined) {
    return {
      ...node,
      exprKind: { case: kind.case, value: { ...kind.value, operand: instrument(kind.value.operand) } },
    };
  }
  if (kind.case === "callExpr") return { ...node, exprKind: { case: kind.case, value: instrumentCall(kind.value) } };
  if (kind.case === "listExpr") {
    return {
      ...node,
      exprKind: { case: kind.case, value: { ...kind.value, elements: kind.value.elements.map(instrument) } },
    };
  }
  if (kind.case === "structExpr") {
    const entries = kind.value.entries.map((entry) => ({
      ...entry,
      keyKind:
        entry.keyKind.case === "mapKey"
          ? { case: entry.keyKind.case, value: instrument(entry.keyKind.value) }
          : entry.keyKind,
      ...(entry.value === undefined ? {} : { value: instrument(entry.value) }),
    }));
    return { ...node, exprKind: { case: kind.case, value: { ...kind.value, entries } } };
  }
  if (kind.case === "comprehensionExpr") {
    return { ...node, exprKind: { case: kind.case, value: instrumentLoop(node, kind.value) } };
  }
  return node;
}

function instrumentCall(call: Call): Call {
  const args = call.args.map(instrument);
  return call.target === undefined ? { ...call, args } : { ...call, target: instrument(call.target), args };
}

function instrumentLoop(node: Expr, loop: Comprehension): Comprehension {
  const { iterRange, accuInit, loopCondition, loopStep } = loop;
  if (iterRange === undefined || accuInit === undefined || loopCondition === undefined || loopStep === undefined) {
    throw new TypeError("instrument: expected a whole comprehension");
  }
  const units = countNodes(loopCondition) + countNodes(loopStep);
  const collects = accuInit.exprKind.case === "listExpr";
  return {
    ...loop,
    iterRange: call(node, "@range", [instrument(iterRange)]),
    accuInit: collects ? call(node, "@list", []) : instrument(accuInit),
    loopCondition: call(node, "_&&_", [call(node, "@step", [int(node, units)]), instrument(loopCondition)]),
    loopStep: collects ? instrumentAppend(instrument(loopStep), loop.accuVar) : instrument(loopStep),
  };
}

/** `@result + [x]` becomes `@append(@result, x)`, also in the branches of a condition. */
function instrumentAppend(step: Expr, accumulator: string): Expr {
  if (step.exprKind.case !== "callExpr") return step;
  const { value } = step.exprKind;
  if (value.function === "_?_:_") {
    const [condition, ...branches] = value.args;
    const args = [condition as Expr, ...branches.map((branch) => instrumentAppend(branch, accumulator))];
    return { ...step, exprKind: { case: "callExpr", value: { ...value, args } } };
  }
  const [list, item] = value.args;
  const isAccumulator = list?.exprKind.case === "identExpr" && list.exprKind.value.name === accumulator;
  if (value.function !== "_+_" || !isAccumulator || item?.exprKind.case !== "listExpr") return step;
  return call(step, "@append", [list, item.exprKind.value.elements[0] as Expr]);
}

function call(at: Expr, name: string, args: Expr[]): Expr {
  return { ...at, exprKind: { case: "callExpr", value: { $typeName: "cel.expr.Expr.Call", function: name, args } } };
}

function int(at: Expr, value: number): Expr {
  return {
    ...at,
    exprKind: {
      case: "constExpr",
      value: { $typeName: "cel.expr.Constant", constantKind: { case: "int64Value", value: BigInt(value) } },
    },
  };
}
