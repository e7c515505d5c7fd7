import { type CelEnv, type CelValue, celEnv, isCelError, parse, plan } from "@bufbuild/cel";
import { showText } from "../fault.ts";
import { checkExpression } from "./check.ts";
import { meteredFunctions } from "./function.ts";
import { Meter } from "./meter.ts";
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
import { LeafMemory } from "./tree-function.ts";

/** An expression that could not be answered for one action. Its text is fit to be recorded. */
export class ExpressionError extends Error {
  override readonly name = "ExpressionError";
}

/** One checked expression of a pack. */
export interface Expression {
  readonly text: string;
  readonly shape: Shape;
  /** The value for one action. Throws ExpressionError; never costs more than what is left in the engine's meter. */
  evaluate(variables: Variables): CelValue;
}

type Compiled = { readonly expression: Expression } | { readonly faults: readonly ExpressionFault[] };

/** Compiles and runs the expressions of one pack. Not re-entrant: one action at a time, synchronously. */
export class CelEngine {
  readonly #meter = new Meter();
  readonly #patterns = new PatternCache();
  readonly #leaves = new LeafMemory();
  readonly #env: CelEnv = celEnv({ funcs: meteredFunctions(this.#meter, this.#patterns, this.#leaves) });
  readonly #timestamp = plan(this.#env, parse("timestamp(text)"));

  /** Allows the next action its whole budget, and forgets what was found in the last. */
  refill(): void {
    this.#meter.refill();
    this.#leaves.clear();
  }

  compile(text: string, scope: Scope): Compiled {
    const parsed = parseExpression(text);
    if (isExpressionFault(parsed)) return { faults: [parsed] };
    const { faults, shape } = checkExpression(parsed, scope, this.#patterns);
    if (faults.length > 0) return { faults };
    return { expression: { text, shape, evaluate: this.prepare(parsed.root) } };
  }

  /** Evaluates a node of an expression that compiled here, as it would be evaluated inside that. */
  prepare(node: Expr): Expression["evaluate"] {
    const run = plan(this.#env, instrument(node));
    return (variables) => this.#settle(run(variables));
  }

  /** Whether the budget of this action is spent: nothing can be evaluated any more. */
  get isSpent(): boolean {
    return this.#meter.overrun;
  }

  /** The value of an RFC 3339 time. */
  timestamp(text: string): CelValue {
    return this.#settle(this.#timestamp({ text }));
  }

  #settle(result: unknown): CelValue {
    // Asked first: `||` may have swallowed the error that stopped a loop half way.
    if (this.#meter.overrun) throw new ExpressionError("the expression spent more work than one evaluation may");
    if (isCelError(result)) throw new ExpressionError(showText(result.message));
    return result as CelValue;
  }
}

/**
 * The same expression with its loops paid for: each comprehension walks `@range(range)`, asks `@step(n)` before every
 * turn (`n` is the number of nodes a turn evaluates), and collects lists with `@list` and `@append`.
 * A pack cannot write these names: `@` is no character of the language.
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
