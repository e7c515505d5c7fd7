import type { ExpressionOutcome } from "../../kernel/explanation.ts";
import type { Comprehension, Expr } from "./syntax.ts";

/** What an expression was decided by, and when the rest is not asked. */
export interface Parts {
  readonly parts: readonly Expr[];
  /** Whether the next part is asked, after those that came to `before`. */
  readonly isAsked: (before: readonly ExpressionOutcome[]) => boolean;
}

/** A loop that ends as soon as one turn decides it: `exists`, `all`. */
export interface Loop {
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
export function partsOf(node: Expr): Parts {
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
export function loopOf(node: Expr): Loop | undefined {
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
