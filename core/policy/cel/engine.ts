import { showText } from "../../action/visible-text.ts";
import { checkExpression } from "./check.ts";
import { ExpressionBuilder } from "./compiler.ts";
import type { CompiledNode } from "./evaluator.ts";
import { Meter } from "./meter.ts";
import { PatternCache } from "./pattern.ts";
import type { Scope, Variables } from "./scope.ts";
import { type Expr, type ExpressionFault, isExpressionFault, parseExpression, type Shape } from "./syntax.ts";
import { CelFailure, type CelResult, type CelValue } from "./value.ts";

/** An expression that could not be evaluated for one action. Its message is safe to record. */
export class ExpressionError extends Error {
  override readonly name = "ExpressionError";
}

const spent = "the expression spent more work than one evaluation may";

/** One checked expression of a pack. */
export interface Expression {
  readonly text: string;
  readonly shape: Shape;
  /** The fields that are there wherever it is true. */
  readonly guards: ReadonlySet<string>;
  /** Evaluates for one action. Throws ExpressionError; bounded by the engine's work budget. */
  evaluate(variables: Variables): CelValue;
}

type Compiled = { readonly expression: Expression } | { readonly faults: readonly ExpressionFault[] };

/** Compiles and runs the expressions of one pack. Not re-entrant: one action at a time, synchronously. */
export class CelEngine {
  /** The work budget: `left` is set to `evaluationUnits` before each evaluation. */
  readonly meter: Meter = new Meter();
  readonly #patterns = new PatternCache();
  readonly #builder = new ExpressionBuilder(this.meter, this.#patterns);

  /** Compiles an expression that is evaluated only where the fields of `present` are there. */
  compile(text: string, scope: Scope, present?: ReadonlySet<string>): Compiled {
    const parsed = parseExpression(text);
    if (isExpressionFault(parsed)) return { faults: [parsed] };
    const { faults, shape, guards } = checkExpression(parsed, scope, this.#patterns, present);
    if (faults.length > 0) return { faults };
    return { expression: { text, shape, guards, evaluate: this.prepare(parsed.root) } };
  }

  /**
   * Compiles a node of an expression that compiled here; it evaluates as it would inside that expression. `locals` are
   * the names of the loop variables around it, which the variables then hold.
   */
  prepare(node: Expr, locals: Iterable<string> = []): Expression["evaluate"] {
    const loops = new Map<string, CompiledNode>();
    for (const name of locals) loops.set(name, (variables) => variables.locals.get(name) as CelValue);
    const evaluate = this.#builder.compile(node, loops);
    const meter = this.meter;
    return (variables) => {
      if (meter.left < 0) throw new ExpressionError(spent);
      let result: CelResult;
      try {
        result = evaluate(variables);
      } catch (error) {
        if (meter.left < 0) throw new ExpressionError(spent);
        result = new CelFailure(error instanceof Error ? error.message : String(error));
      }
      if (result instanceof CelFailure) throw new ExpressionError(showText(result.message));
      return result;
    };
  }
}
