import { type Call, type Comprehension, countNodes, type Expr } from "./syntax.ts";

/**
 * The same expression with its loops paid for: each comprehension walks `@range(range)`, asks `@step(n)` before every
 * turn (`n` is the number of nodes a turn evaluates), and collects lists with `@list` and `@append`.
 * A pack cannot write these names: `@` is no character of the language.
 */
export function instrument(node: Expr): Expr {
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
