import { type CompiledNode, choiceFailure, type LoopVariables, noOverload, operandFailure } from "./evaluator.ts";
import type { Meter } from "./meter.ts";
import type { Variables } from "./scope.ts";
import { type Comprehension, countNodes, type Expr } from "./syntax.ts";
import { CelFailure, type CelResult, type CelValue, isList, isMap, keysOf } from "./value.ts";

/** Compiles the nodes of a loop. */
interface NodeCompiler {
  readonly meter: Meter;
  compile(node: Expr, loops: LoopVariables): CompiledNode;
}

interface LoopParts {
  readonly range: CompiledNode;
  /** Holds the item of the iteration. */
  readonly variable: { value: CelValue };
  /** The price of an iteration. */
  readonly units: number;
  readonly meter: Meter;
}

/**
 * Compiles a macro that the parser expanded. A loop charges for the size of its range, then for each iteration the number
 * of nodes that it evaluates.
 */
export function compileLoop(loop: Comprehension, loops: LoopVariables, builder: NodeCompiler): CompiledNode {
  const { iterRange, accuInit, loopCondition, loopStep, iterVar } = loop;
  if (iterRange === undefined || accuInit === undefined || loopCondition === undefined || loopStep === undefined) {
    throw new TypeError("compileLoop: expected a whole comprehension");
  }
  const variable: { value: CelValue } = { value: null };
  const inside = new Map(loops).set(iterVar, () => variable.value);
  const compile = (node: Expr): CompiledNode => builder.compile(node, inside);
  const parts: LoopParts = {
    range: builder.compile(iterRange, loops),
    variable,
    units: countNodes(loopCondition) + countNodes(loopStep),
    meter: builder.meter,
  };
  const { name, args } = stepOf(loopStep);
  const [first, second] = args as [Expr, Expr];
  if (name === "_||_") return compileSearch(parts, compile(second), true);
  if (name === "_&&_") return compileSearch(parts, compile(second), false);
  if (name === "_+_") return compileCollect(parts, undefined, compile(addedItem(second)));
  if (accuInit.exprKind.case !== "listExpr") return compileCount(parts, compile(first));
  return compileCollect(parts, compile(first), compile(addedItem(stepOf(second).args[1] as Expr)));
}

function stepOf({ exprKind: kind }: Expr): { readonly name: string; readonly args: readonly Expr[] } {
  if (kind.case !== "callExpr") throw new TypeError("compileLoop: expected a step that is a call");
  return { name: kind.value.function, args: kind.value.args };
}

/** The `x` of `@result + [x]`. */
function addedItem({ exprKind: kind }: Expr): Expr {
  const [item] = kind.case === "listExpr" ? kind.value.elements : [];
  if (item === undefined) throw new TypeError("compileLoop: expected a step that adds an item");
  return item;
}

/** Returns the items or keys that a loop goes through, charged for. */
function itemsOf({ range, meter }: LoopParts, variables: Variables): readonly CelValue[] | CelFailure {
  const value = range(variables);
  if (value instanceof CelFailure) return value;
  if (!isList(value) && !isMap(value)) return noOverload("@range", [value], false);
  const items = isList(value) ? value : keysOf(value);
  meter.charge(items.length);
  return items;
}

/** `exists` (`decisive` is true) or `all`: stops at the decisive item, which absorbs what failed before it. */
function compileSearch(parts: LoopParts, condition: CompiledNode, decisive: boolean): CompiledNode {
  const { variable, units, meter } = parts;
  return (variables) => {
    const items = itemsOf(parts, variables);
    if (items instanceof CelFailure) return items;
    let result: boolean | CelFailure = !decisive;
    for (const item of items) {
      meter.charge(units);
      if (result === decisive) break;
      variable.value = item;
      const found = condition(variables);
      if (found === decisive) result = decisive;
      else if (typeof result === "boolean" && typeof found !== "boolean") result = operandFailure(found);
    }
    variable.value = null;
    return result;
  };
}

/** `exists_one`. */
function compileCount(parts: LoopParts, condition: CompiledNode): CompiledNode {
  const { variable, units, meter } = parts;
  return (variables) => {
    const items = itemsOf(parts, variables);
    if (items instanceof CelFailure) return items;
    let count: number | CelFailure = 0;
    for (const item of items) {
      meter.charge(units);
      variable.value = item;
      const found = condition(variables);
      if (typeof found !== "boolean") count = choiceFailure(found);
      else if (found && typeof count === "number") count++;
    }
    variable.value = null;
    if (count instanceof CelFailure) return count;
    meter.charge(1);
    return count === 1;
  };
}

/** `map` and `filter`; after a failure, items are still tested, and the last failure is the result. */
function compileCollect(parts: LoopParts, condition: CompiledNode | undefined, item: CompiledNode): CompiledNode {
  const { variable, units, meter } = parts;
  return (variables) => {
    const items = itemsOf(parts, variables);
    if (items instanceof CelFailure) return items;
    const collected: CelValue[] = [];
    let failure: CelFailure | undefined;
    for (const each of items) {
      meter.charge(units);
      variable.value = each;
      const isTaken: CelResult = condition === undefined ? true : condition(variables);
      if (typeof isTaken !== "boolean") failure = choiceFailure(isTaken);
      else if (isTaken && failure === undefined) {
        const made = item(variables);
        if (made instanceof CelFailure) failure = made;
        else collected.push(made);
      }
    }
    variable.value = null;
    return failure ?? collected;
  };
}
