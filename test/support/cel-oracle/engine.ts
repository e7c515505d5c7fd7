import { type CelEnv, type CelValue, celEnv, isCelError, parse, plan } from "@bufbuild/cel";
import type { ActionEnvelope } from "../../../core/action/envelope.ts";
import { evaluationUnits, Meter } from "../../../core/policy/cel/meter.ts";
import type { PackVariables } from "../../../core/policy/cel/scope.ts";
import {
  type Call,
  type Comprehension,
  countNodes,
  type Expr,
  parseExpression,
} from "../../../core/policy/cel/syntax.ts";
import { LeafCache, meteredFunctions } from "./function.ts";
import { literalsOf, OraclePatterns } from "./pattern.ts";
import { bindVariables } from "./scope.ts";

/** The result of an expression as the library's planner evaluates it, and the units it spent. */
export type OracleResult = { readonly value: CelValue } | { readonly error: string; readonly spent: boolean };

/** Evaluates expressions with the planner of the library they are written for; core's own compiler must agree with it. */
export class CelOracle {
  readonly #meter = new Meter();
  readonly #patterns = new OraclePatterns();
  readonly #leaves = new LeafCache();
  readonly #env: CelEnv = celEnv({ funcs: meteredFunctions(this.#meter, this.#patterns, this.#leaves) });
  /** Without a meter: reading `now` is free. */
  readonly #timestamp = plan(celEnv(), parse("timestamp(text)"));

  /** Starts an evaluation with a whole budget, or with `units`. */
  refill(units = evaluationUnits): void {
    this.#meter.left = units;
    this.#leaves.byValue = new Map();
  }

  get left(): number {
    return this.#meter.left;
  }

  /** Plans an expression that core compiled; no other expression's patterns are known to it. */
  prepare(text: string): (action: ActionEnvelope, pack: PackVariables) => OracleResult {
    const parsed = parseExpression(text);
    if (!("root" in parsed)) throw new TypeError(`oracle: ${parsed.message}`);
    const literals = literalsOf(parsed.root);
    const run = plan(this.#env, instrument(parsed.root));
    return (action, pack) => {
      this.#patterns.literals = literals;
      const variables = bindVariables(action, pack, () => this.#timestamp({ text: action.time }) as CelValue);
      const result = run(variables as never);
      if (this.#meter.left < 0) return { error: "spent", spent: true };
      return isCelError(result) ? { error: result.message, spent: false } : { value: result };
    };
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
