import { type CelValue, isCelList, isCelMap } from "@bufbuild/cel";
import type { ExplainedExpression } from "../../kernel/explanation.ts";
import { showText } from "../display.ts";
import { writeValue } from "../value-text.ts";
import { type CelEngine, ExpressionError } from "./engine.ts";
import { type Loop, loopOf, partsOf } from "./part.ts";
import type { Variables } from "./scope.ts";
import { type Expr, isFault, type ParsedExpression, parseExpression } from "./syntax.ts";

/** Parts told of one expression, and how deep they lie in one another. */
const mostParts = 64;
const deepestPart = 12;
/** Items of a loop's range that are tried to find the one that decided it. */
const mostItems = 1_000;

/** One action, and what of it may be seen. */
export interface TracedVariables {
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
export function untold(text: string): ExplainedExpression {
  return { ...nothing, text: showText(text), outcome: "not_kept" };
}

function parseAgain(text: string): ParsedExpression {
  const parsed = parseExpression(text);
  if (isFault(parsed)) throw new TypeError("trace: expected an expression that compiled");
  return parsed;
}

const nothing = { value: null, parts: [], more: false } as const;
const hidden = "[redacted]";

class Trace {
  readonly #engine: CelEngine;
  readonly #parsed: ParsedExpression;
  #left = mostParts;

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
    if (answer.outcome === "too_dear") return told;
    const { parts, more } = this.#parts(node, variables, depth + 1);
    return { ...told, parts, more };
  }

  /** What a node came to, without its parts. */
  #answer(node: Expr, { real, shown }: TracedVariables): Omit<ExplainedExpression, "text"> {
    const asked = this.#ask(node, real);
    if ("value" in asked && typeof asked.value === "boolean")
      return { ...nothing, outcome: asked.value ? "true" : "false", value: String(asked.value) };
    if ("spent" in asked && asked.spent) return { ...nothing, outcome: "too_dear" };
    const outcome = "value" in asked ? "value" : "error";
    const value = textOf(asked);
    const isSame = shown === real || (shown !== null && textOf(this.#ask(node, shown)) === value);
    return { ...nothing, outcome, value: isSame ? value : hidden };
  }

  #parts(node: Expr, variables: TracedVariables, depth: number): Pick<ExplainedExpression, "parts" | "more"> {
    const { parts, isAsked } = partsOf(node);
    const loop = loopOf(node);
    if (parts.length === 0 && loop === undefined) return nothing;
    if (depth > deepestPart) return { parts: [], more: true };
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
    return { ...nothing, text: showText(this.#parsed.textOf(node)), outcome: "not_asked" };
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
      if (items.length === mostItems) break;
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
