import type { ExplainedExpression, ExpressionOutcome } from "../../action/explanation.ts";
import { showText } from "../../action/visible-text.ts";
import { type CelEngine, type Expression, ExpressionError } from "./engine.ts";
import { type Variables, withLocal } from "./scope.ts";
import {
  type Comprehension,
  type Expr,
  isExpressionFault,
  type ParsedExpression,
  parseExpression,
  present,
} from "./syntax.ts";
import { type CelValue, entriesOf, isList, isMap, keysOf } from "./value.ts";

/** The number of parts of one expression that are explained, and their depth. */
const maxParts = 64;
const maxPart = 12;
/** Items of a loop's range that are searched for the deciding one. */
const maxItems = 1_000;

/** An action, and its visible version. */
interface TracedVariables {
  readonly real: Variables;
  /**
   * The action without its hidden values; the same object where nothing is hidden, null where no value may be shown.
   */
  readonly visible: Variables | null;
}

/** The result of an evaluation: a value, or the reason why there is none. */
type EvaluatedPart = { readonly value: CelValue } | { readonly error: string; readonly spent: boolean };

/**
 * Evaluates an expression part by part, as the engine evaluates it, and reports the outcome of every part. Whether a
 * condition is true is reported for the real action. Any other value is shown only where the visible action has the
 * same: so none contains or depends on a hidden value. Spends what is left of the engine's budget and stops there.
 */
export class ExpressionTracer {
  readonly #engine: CelEngine;
  readonly #variables: TracedVariables;

  constructor(engine: CelEngine, variables: TracedVariables) {
    this.#engine = engine;
    this.#variables = variables;
  }

  /** `text` is that of an expression that compiled on this engine. */
  trace(text: string): ExplainedExpression {
    return new Trace(this.#engine, parseAgain(text)).run(this.#variables);
  }
}

/** An expression without an action to evaluate it for. */
export function untraced(text: string): ExplainedExpression {
  return { ...nothing, text: showText(text), outcome: "unavailable" };
}

function parseAgain(text: string): ParsedExpression {
  const parsed = parseExpression(text);
  if (isExpressionFault(parsed)) throw new TypeError("trace: expected an expression that compiled");
  return parsed;
}

const nothing = { value: null, parts: [], more: false } as const;
const hidden = "[redacted]";

class Trace {
  readonly #engine: CelEngine;
  readonly #parsed: ParsedExpression;
  readonly #compiled = new Map<Expr, Expression["evaluate"]>();
  #left = maxParts;

  constructor(engine: CelEngine, parsed: ParsedExpression) {
    this.#engine = engine;
    this.#parsed = parsed;
  }

  run(variables: TracedVariables): ExplainedExpression {
    return this.#trace(this.#parsed.root, variables, 0);
  }

  #trace(node: Expr, variables: TracedVariables, depth: number): ExplainedExpression {
    this.#left--;
    const outcome = this.#outcome(node, variables);
    const traced = { text: showText(this.#parsed.textOf(node)), ...outcome };
    if (outcome.outcome === "budget_exceeded") return traced;
    const { parts, more } = this.#parts(node, variables, depth + 1);
    return { ...traced, parts, more };
  }

  /** The outcome of a node, without its parts. */
  #outcome(node: Expr, { real, visible }: TracedVariables): Omit<ExplainedExpression, "text"> {
    const result = this.#evaluate(node, real);
    if ("value" in result && typeof result.value === "boolean")
      return { ...nothing, outcome: result.value ? "true" : "false", value: String(result.value) };
    if ("spent" in result && result.spent) return { ...nothing, outcome: "budget_exceeded" };
    const outcome = "value" in result ? "value" : "error";
    const value = textOf(result);
    const isSame = visible === real || (visible !== null && textOf(this.#evaluate(node, visible)) === value);
    return { ...nothing, outcome, value: isSame ? value : hidden };
  }

  #parts(node: Expr, variables: TracedVariables, depth: number): Pick<ExplainedExpression, "parts" | "more"> {
    const { parts, isEvaluated } = partsOf(node);
    const loop = loopOf(node);
    if (parts.length === 0 && loop === undefined) return nothing;
    if (depth > maxPart) return { parts: [], more: true };
    const traced: ExplainedExpression[] = [];
    for (const part of parts) {
      if (this.#left <= 0) return { parts: traced, more: true };
      const isNext = isEvaluated(traced.map(({ outcome }) => outcome));
      traced.push(isNext ? this.#trace(part, variables, depth) : this.#skip(part));
    }
    const iteration = loop === undefined ? undefined : this.#iteration(loop, variables, depth);
    return { parts: iteration === undefined ? traced : [...traced, iteration], more: false };
  }

  #skip(node: Expr): ExplainedExpression {
    this.#left--;
    return { ...nothing, text: showText(this.#parsed.textOf(node)), outcome: "skipped" };
  }

  /**
   * Explains the iteration that decided a loop: the first whose condition has the deciding value, else the first of
   * all.
   */
  #iteration(loop: Loop, variables: TracedVariables, depth: number): ExplainedExpression | undefined {
    const items = this.#itemsOf(loop, variables.real);
    if (items.length === 0 || this.#left <= 0) return undefined;
    const found = items.findIndex((item) => this.#isDecisive(loop, withLocal(variables.real, loop.variable, item)));
    const at = Math.max(found, 0);
    const inside = this.#bindIteration(loop, variables, items[at] as CelValue, at);
    this.#left--;
    const item = this.#outcome(loop.item, inside);
    return { ...item, text: loop.variable, parts: [this.#trace(loop.condition, inside, depth + 1)] };
  }

  #isDecisive({ condition, decisive }: Loop, variables: Variables): boolean {
    const result = this.#evaluate(condition, variables);
    return "value" in result && result.value === decisive;
  }

  /** Binds the loop's variable for both actions: a value hidden in one may differ or be missing in the other. */
  #bindIteration(loop: Loop, { real, visible }: TracedVariables, item: CelValue, at: number): TracedVariables {
    const bound = withLocal(real, loop.variable, item);
    if (visible === real) return { real: bound, visible: bound };
    const seen = visible === null ? undefined : this.#itemsOf(loop, visible)[at];
    return {
      real: bound,
      visible: visible === null || seen === undefined ? null : withLocal(visible, loop.variable, seen),
    };
  }

  #itemsOf({ range }: Loop, variables: Variables): readonly CelValue[] {
    const result = this.#evaluate(range, variables);
    if (!("value" in result)) return [];
    const { value } = result;
    if (isList(value)) return value.slice(0, maxItems);
    return isMap(value) ? keysOf(value).slice(0, maxItems) : [];
  }

  #evaluate(node: Expr, variables: Variables): EvaluatedPart {
    try {
      return { value: this.#compile(node, variables)(variables) };
    } catch (error) {
      if (!(error instanceof ExpressionError)) throw error;
      return { error: error.message, spent: this.#engine.meter.left < 0 };
    }
  }

  /** A node is compiled once: the loops around it are always the same. */
  #compile(node: Expr, { locals }: Variables): Expression["evaluate"] {
    const compiled = this.#compiled.get(node) ?? this.#engine.prepare(node, locals.keys());
    this.#compiled.set(node, compiled);
    return compiled;
  }
}

function textOf(result: EvaluatedPart): string {
  return "value" in result ? showText(writeValue(result.value)) : result.error;
}

/** The parts of an expression, and the rule for skipping some. */
interface Parts {
  readonly parts: readonly Expr[];
  /** Returns whether the next part is evaluated, given the outcomes before it. */
  readonly isEvaluated: (before: readonly ExpressionOutcome[]) => boolean;
}

/** A loop that ends with the iteration that decides it: `exists`, `all`. */
interface Loop {
  readonly variable: string;
  readonly range: Expr;
  /** The loop variable as an expression. */
  readonly item: Expr;
  readonly condition: Expr;
  /** The condition's value that ends the loop. */
  readonly decisive: boolean;
}

const always = (): boolean => true;

/**
 * The parts of an expression that explain it: operands of `&&`, `||` and `!`, the branches of a choice, receivers and
 * arguments. Names, paths and literals have none.
 */
function partsOf(node: Expr): Parts {
  const { exprKind: kind } = node;
  if (kind.case === "comprehensionExpr") return { parts: present([kind.value.iterRange]), isEvaluated: always };
  if (kind.case !== "callExpr") return { parts: [], isEvaluated: always };
  const { function: name, target, args } = kind.value;
  if (name === "_&&_") return { parts: operandsOf(node, name), isEvaluated: (before) => !before.includes("false") };
  if (name === "_||_") return { parts: operandsOf(node, name), isEvaluated: (before) => !before.includes("true") };
  if (name === "_?_:_") return choice(args);
  const from = name === "_[_]" ? args.slice(1) : [target, ...args];
  return { parts: present(from).filter((part) => !isLiteral(part)), isEvaluated: always };
}

/** The loop of an expression that stops at the deciding iteration; undefined for others. */
function loopOf(node: Expr): Loop | undefined {
  if (node.exprKind.case !== "comprehensionExpr") return undefined;
  const loop = node.exprKind.value;
  const condition = conditionOf(loop);
  if (condition === undefined || loop.iterRange === undefined) return undefined;
  const item: Expr = { ...node, exprKind: { case: "identExpr", value: { ...identifier, name: loop.iterVar } } };
  return { variable: loop.iterVar, range: loop.iterRange, item, ...condition };
}

const identifier = { $typeName: "cel.expr.Expr.Ident" } as const;

/** `exists` steps by `@result || condition`, `all` by `@result && condition`. */
function conditionOf({ loopStep, accuVar }: Comprehension): Pick<Loop, "condition" | "decisive"> | undefined {
  if (loopStep?.exprKind.case !== "callExpr") return undefined;
  const { function: name, args } = loopStep.exprKind.value;
  const [before, condition] = args;
  const isAccumulator = before?.exprKind.case === "identExpr" && before.exprKind.value.name === accuVar;
  if (!isAccumulator || condition === undefined || (name !== "_||_" && name !== "_&&_")) return undefined;
  return { condition, decisive: name === "_||_" };
}

/** Flattens `a && b && c`, which the parser nests. */
function operandsOf(node: Expr, name: string): readonly Expr[] {
  const { exprKind: kind } = node;
  if (kind.case !== "callExpr" || kind.value.function !== name) return [node];
  return kind.value.args.flatMap((arg) => operandsOf(arg, name));
}

/** The condition, then the branch it chose. */
function choice(args: readonly Expr[]): Parts {
  const chosen = [undefined, "true", "false"] as const;
  return { parts: args, isEvaluated: (before) => before.length === 0 || before[0] === chosen[before.length] };
}

function isLiteral({ exprKind: kind }: Expr): boolean {
  if (kind.case === "constExpr") return true;
  return kind.case === "listExpr" && kind.value.elements.every(isLiteral);
}

/** UTF-16 code units after which writing stops; `showText` cuts shorter. */
const maxWritten = 1_024;
/** The items of one list, or members of one map, that are written. */
const maxWrittenItems = 64;
const maxDepth = 3;

/**
 * Formats a value as text: lists and maps three levels deep, nested texts in quotes. Stops at the length that is shown
 * anyway, so that a huge value is cheap. To be passed through `showText`.
 */
export function writeValue(value: CelValue): string {
  const writer = new ValueWriter();
  writer.write(value, maxDepth);
  return writer.text;
}

class ValueWriter {
  text = "";

  write(value: CelValue, levels: number): void {
    if (typeof value === "string") this.text += JSON.stringify(value.slice(0, maxWritten));
    else if (isList(value)) this.#list(value, levels);
    else if (isMap(value)) this.#map(entriesOf(value), levels);
    else this.text += typeof value === "object" && value !== null ? "[value]" : String(value);
  }

  #list(items: Iterable<CelValue>, levels: number): void {
    if (levels === 0) this.text += "[…]";
    else this.#enclose("[", items, "]", (item) => this.write(item, levels - 1));
  }

  #map(members: Iterable<readonly [unknown, CelValue]>, levels: number): void {
    if (levels === 0) {
      this.text += "{…}";
      return;
    }
    this.#enclose("{", members, "}", ([name, item]) => {
      this.text += `${String(name)}: `;
      this.write(item, levels - 1);
    });
  }

  #enclose<T>(open: string, items: Iterable<T>, close: string, write: (item: T) => void): void {
    this.text += open;
    let count = 0;
    for (const item of items) {
      if (count > 0) this.text += ", ";
      if (count === maxWrittenItems || this.text.length > maxWritten) {
        this.text += "…";
        break;
      }
      write(item);
      count++;
    }
    this.text += close;
  }
}
