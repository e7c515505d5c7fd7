import { type CelEnv, type CelValue, celEnv, isCelError, parse, plan } from "@bufbuild/cel";
import { showText } from "../display.ts";
import { checkExpression } from "./check.ts";
import { meteredFunctions } from "./function.ts";
import { instrument } from "./instrument.ts";
import { Meter } from "./meter.ts";
import { PatternCache } from "./pattern.ts";
import type { Scope, Variables } from "./scope.ts";
import type { Shape } from "./shape.ts";
import { type Expr, type ExpressionFault, isFault, parseExpression } from "./syntax.ts";
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

export type Compiled = { readonly expression: Expression } | { readonly faults: readonly ExpressionFault[] };

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
    if (isFault(parsed)) return { faults: [parsed] };
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
