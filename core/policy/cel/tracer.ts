import { type CelValue, isCelList, isCelMap } from "@bufbuild/cel";
import type { ExplainedExpression, ExpressionOutcome } from "../../action/explanation.ts";
import { showText } from "../../action/visible-text.ts";
import { type CelEngine, ExpressionError } from "./engine.ts";
import type { Variables } from "./scope.ts";
import { type Comprehension, type Expr, isExpressionFault, type ParsedExpression, parseExpression } from "./syntax.ts";

/** Parts told of one expression, and how deep they lie in one another. */
const maxParts = 64;
const maxPart = 12;
/** Items of a loop's range that are tried to find the one that decided it. */
const maxItems = 1_000;

/** One action, and what of it may be seen. */
interface TracedVariables {
  readonly real: Variables;
  /** The same where nothing is hidden; null where no value may be seen. */
  readonly shown: Variables | null;
}

/** What an evaluation gave: a value, or the reason why there is none. */
type Asked = { readonly value: CelValue } | { readonly error: string; readonly spent: boolean };

/**
 * Evaluates expressions part by part, each as the engine evaluates it inside the whole, and says what every part came to.
 * Whether something is true is told of the real action. Every other value is told only where it would be the same of the
 * action that may be seen: so none can hold, or be made of, what is hidden. Takes what is left of the engine's budget, and stops where that is spent.
 */
export class ExpressionTracer {
  readonly #engine: CelEngine;
  readonly #variables: TracedVariables;

  constructor(engine: CelEngine, variables: TracedVariables) {
    this.#engine = engine;
    this.#variables = variables;
  }

  /** `text`: of an expression that compiled on this engine. */
  trace(text: string): ExplainedExpression {
    return new Trace(this.#engine, parseAgain(text)).tell(this.#variables);
  }
}

/** The text of an expression, told of no action. */
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
  #left = maxParts;

  constructor(engine: CelEngine, parsed: ParsedExpression) {
    this.#engine = engine;
    this.#parsed = parsed;
  }

  tell(variables: TracedVariables): ExplainedExpression {
    return this.#tell(this.#parsed.root, variables, 0);
  }

  #tell(node: Expr, variables: TracedVariables, depth: number): ExplainedExpression {
    this.#left--;
    const answer = this.#answer(node, variables);
    const told = { text: showText(this.#parsed.textOf(node)), ...answer };
    if (answer.outcome === "budget_exceeded") return told;
    const { parts, more } = this.#parts(node, variables, depth + 1);
    return { ...told, parts, more };
  }

  /** What a node came to, without its parts. */
  #answer(node: Expr, { real, shown }: TracedVariables): Omit<ExplainedExpression, "text"> {
    const asked = this.#ask(node, real);
    if ("value" in asked && typeof asked.value === "boolean")
      return { ...nothing, outcome: asked.value ? "true" : "false", value: String(asked.value) };
    if ("spent" in asked && asked.spent) return { ...nothing, outcome: "budget_exceeded" };
    const outcome = "value" in asked ? "value" : "error";
    const value = textOf(asked);
    const isSame = shown === real || (shown !== null && textOf(this.#ask(node, shown)) === value);
    return { ...nothing, outcome, value: isSame ? value : hidden };
  }

  #parts(node: Expr, variables: TracedVariables, depth: number): Pick<ExplainedExpression, "parts" | "more"> {
    const { parts, isAsked } = partsOf(node);
    const loop = loopOf(node);
    if (parts.length === 0 && loop === undefined) return nothing;
    if (depth > maxPart) return { parts: [], more: true };
    const told: ExplainedExpression[] = [];
    for (const part of parts) {
      if (this.#left <= 0) return { parts: told, more: true };
      const isNext = isAsked(told.map(({ outcome }) => outcome));
      told.push(isNext ? this.#tell(part, variables, depth) : this.#skip(part));
    }
    const turn = loop === undefined ? undefined : this.#turn(loop, variables, depth);
    return { parts: turn === undefined ? told : [...told, turn], more: false };
  }

  #skip(node: Expr): ExplainedExpression {
    this.#left--;
    return { ...nothing, text: showText(this.#parsed.textOf(node)), outcome: "skipped" };
  }

  /** The turn of a loop that decided it: the first whose condition is as `loop` says; else the first of all. */
  #turn(loop: Loop, variables: TracedVariables, depth: number): ExplainedExpression | undefined {
    const items = this.#itemsOf(loop, variables.real);
    if (items.length === 0 || this.#left <= 0) return undefined;
    const found = items.findIndex((item) => this.#isDecisive(loop, bind(variables.real, loop.variable, item)));
    const at = Math.max(found, 0);
    const inside = this.#bindTurn(loop, variables, items[at] as CelValue, at);
    this.#left--;
    const item = this.#answer(loop.item, inside);
    return { ...item, text: loop.variable, parts: [this.#tell(loop.condition, inside, depth + 1)] };
  }

  #isDecisive({ condition, decisive }: Loop, variables: Variables): boolean {
    const asked = this.#ask(condition, variables);
    return "value" in asked && asked.value === decisive;
  }

  /** The loop's variable for both actions: what is hidden in one may be another value in the other, or none. */
  #bindTurn(loop: Loop, { real, shown }: TracedVariables, item: CelValue, at: number): TracedVariables {
    const bound = bind(real, loop.variable, item);
    if (shown === real) return { real: bound, shown: bound };
    const seen = shown === null ? undefined : this.#itemsOf(loop, shown)[at];
    return { real: bound, shown: shown === null || seen === undefined ? null : bind(shown, loop.variable, seen) };
  }

  #itemsOf({ range }: Loop, variables: Variables): readonly CelValue[] {
    const asked = this.#ask(range, variables);
    if (!("value" in asked)) return [];
    const { value } = asked;
    const all: Iterable<CelValue> = isCelList(value) ? value : isCelMap(value) ? value.keys() : [];
    const items: CelValue[] = [];
    for (const item of all) {
      if (items.length === maxItems) break;
      items.push(item);
    }
    return items;
  }

  #ask(node: Expr, variables: Variables): Asked {
    try {
      return { value: this.#engine.prepare(node)(variables) };
    } catch (error) {
      if (!(error instanceof ExpressionError)) throw error;
      return { error: error.message, spent: this.#engine.isSpent };
    }
  }
}

function textOf(asked: Asked): string {
  return "value" in asked ? showText(writeValue(asked.value)) : asked.error;
}

/** The same variables and one more, which may hide another of its name. */
function bind(variables: Variables, name: string, value: CelValue): Variables {
  return Object.create(variables, { [name]: { value, enumerable: true } }) as Variables;
}

/** What an expression was decided by, and when the rest is not asked. */
interface Parts {
  readonly parts: readonly Expr[];
  /** Whether the next part is asked, after those that came to `before`. */
  readonly isAsked: (before: readonly ExpressionOutcome[]) => boolean;
}

/** A loop that ends as soon as one turn decides it: `exists`, `all`. */
interface Loop {
  readonly variable: string;
  readonly range: Expr;
  /** The variable itself, as an expression. */
  readonly item: Expr;
  readonly condition: Expr;
  /** What the condition of the turn that decides it comes to. */
  readonly decisive: boolean;
}

const always = (): boolean => true;

/**
 * The parts of an expression that a reader needs: operands of `&&`, `||` and `!`, the branches of a choice, receivers and
 * arguments. A name, the path from it, and what stands in the rule as it is have none.
 */
function partsOf(node: Expr): Parts {
  const { exprKind: kind } = node;
  if (kind.case === "comprehensionExpr") return { parts: present([kind.value.iterRange]), isAsked: always };
  if (kind.case !== "callExpr") return { parts: [], isAsked: always };
  const { function: name, target, args } = kind.value;
  if (name === "_&&_") return { parts: operandsOf(node, name), isAsked: (before) => !before.includes("false") };
  if (name === "_||_") return { parts: operandsOf(node, name), isAsked: (before) => !before.includes("true") };
  if (name === "_?_:_") return choice(args);
  const from = name === "_[_]" ? args.slice(1) : [target, ...args];
  return { parts: present(from).filter((part) => !isLiteral(part)), isAsked: always };
}

/** The turns of a loop that stops where it is decided; undefined for every other expression. */
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

/** `a && b && c` as three: the parser nests them. */
function operandsOf(node: Expr, name: string): readonly Expr[] {
  const { exprKind: kind } = node;
  if (kind.case !== "callExpr" || kind.value.function !== name) return [node];
  return kind.value.args.flatMap((arg) => operandsOf(arg, name));
}

/** The condition, then the branch it chose. */
function choice(args: readonly Expr[]): Parts {
  const chosen = [undefined, "true", "false"] as const;
  return { parts: args, isAsked: (before) => before.length === 0 || before[0] === chosen[before.length] };
}

function isLiteral({ exprKind: kind }: Expr): boolean {
  if (kind.case === "constExpr") return true;
  return kind.case === "listExpr" && kind.value.elements.every(isLiteral);
}

function present(nodes: readonly (Expr | undefined)[]): readonly Expr[] {
  return nodes.filter((node) => node !== undefined);
}

/** UTF-16 code units after which nothing more is written; `showText` cuts before that. */
const maxWritten = 1_024;
/** Items and members of one list or map. */
const maxItemsValueText = 64;
const deepest = 3;

/**
 * A value as text: lists and maps three levels deep, texts in them between quotes. Stops where a reader is shown no more
 * of it anyway, so a vast value costs no more than a large one. To be passed through `showText`.
 */
export function writeValue(value: CelValue): string {
  const writer = new ValueWriter();
  writer.write(value, deepest);
  return writer.text;
}

class ValueWriter {
  text = "";

  write(value: CelValue, levels: number): void {
    if (typeof value === "string") this.text += JSON.stringify(value.slice(0, maxWritten));
    else if (isCelList(value)) this.#list(value, levels);
    else if (isCelMap(value)) this.#map(value, levels);
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
      if (count === maxItemsValueText || this.text.length > maxWritten) {
        this.text += "…";
        break;
      }
      write(item);
      count++;
    }
    this.text += close;
  }
}
