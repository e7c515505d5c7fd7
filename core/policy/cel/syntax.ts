import { parse, unparse } from "@bufbuild/cel";

/** A node of a parsed expression. */
export type Expr = ReturnType<typeof parse>["expr"];
type ExprKind = Expr["exprKind"];
export type Call = Extract<ExprKind, { case: "callExpr" }>["value"];
export type Select = Extract<ExprKind, { case: "selectExpr" }>["value"];
export type Struct = Extract<ExprKind, { case: "structExpr" }>["value"];
export type Constant = Extract<ExprKind, { case: "constExpr" }>["value"];
export type Comprehension = Extract<ExprKind, { case: "comprehensionExpr" }>["value"];

export interface ParsedExpression {
  readonly root: Expr;
  /** The offset in the text where a node begins. */
  offsetOf(node: Expr): number;
  /** The source text of a node, normalised. */
  textOf(node: Expr): string;
}

/** A fault of an expression, at an offset of its text. */
export interface ExpressionFault {
  readonly offset: number;
  readonly message: string;
}

const maxExpression = 4_096;
const maxBrackets = 32;
const maxTree = 100;

/** Parses one expression within its bounds: 4,096 characters, brackets 32 deep, a tree 100 deep. */
export function parseExpression(text: string): ParsedExpression | ExpressionFault {
  if (text.length > maxExpression) {
    return fault(0, `expected an expression of at most ${maxExpression} characters, got ${text.length}`);
  }
  const deep = deepBracket(text);
  if (deep !== undefined) return fault(deep, `expected brackets at most ${maxBrackets} deep, got more`);
  try {
    const whole = parse(text);
    const { expr: root, sourceInfo } = whole;
    const parsed: ParsedExpression = {
      root,
      offsetOf: (node) => sourceInfo?.positions[node.id.toString()] ?? 0,
      textOf: (node) => unparse({ ...whole, expr: node }),
    };
    if (treeDepth(root) > maxTree) return fault(0, `expected an expression at most ${maxTree} deep, got a deeper one`);
    return parsed;
  } catch (error) {
    return unclosedFault(text) ?? syntaxFault(error);
  }
}

export function isExpressionFault(value: ParsedExpression | ExpressionFault): value is ExpressionFault {
  return "message" in value;
}

function fault(offset: number, message: string): ExpressionFault {
  return { offset, message };
}

function syntaxFault(error: unknown): ExpressionFault {
  const message = error instanceof Error ? error.message : String(error);
  const located = error as { readonly location?: { readonly start?: { readonly offset?: unknown } } };
  const offset = located.location?.start?.offset;
  const said = message.replace(/^<input>:\d+:\d+: /, "");
  return fault(
    typeof offset === "number" ? offset : 0,
    `not an expression: ${said.charAt(0).toLowerCase()}${said.slice(1)}`,
  );
}

/** The fault of a string that is not closed: the parser would blame what stands inside it. */
function unclosedFault(text: string): ExpressionFault | undefined {
  for (const { at, end, character } of outsideStrings(text)) {
    if (end >= text.length) return fault(at, `not an expression: expected a closing \`${character}\` for this one`);
  }
  return undefined;
}

/** Finds brackets nested too deep, strings skipped. Checked before parsing: the parser recurses. */
function deepBracket(text: string): number | undefined {
  let depth = 0;
  for (const { at, character } of outsideStrings(text)) {
    if ("([{".includes(character) && ++depth > maxBrackets) return at;
    if (")]}".includes(character)) depth--;
  }
  return undefined;
}

interface Outside {
  readonly at: number;
  /** The quote that closes a string, beyond the text where none does; `at` for what is no string. */
  readonly end: number;
  readonly character: string;
}

/** The characters of a text outside its strings; of a string, the quote that opens it. */
function* outsideStrings(text: string): Generator<Outside> {
  for (let at = 0; at < text.length; at++) {
    const character = text[at] as string;
    const end = character === '"' || character === "'" ? closingQuote(text, at) : at;
    yield { at, end, character };
    at = end;
  }
}

function closingQuote(text: string, start: number): number {
  const quote = text[start] as string;
  let at = start + 1;
  while (at < text.length && text[at] !== quote) at += text[at] === "\\" ? 2 : 1;
  return at;
}

/** The child nodes. */
function children(node: Expr): readonly Expr[] {
  const { exprKind: kind } = node;
  if (kind.case === "selectExpr") return present([kind.value.operand]);
  if (kind.case === "callExpr") return present([kind.value.target, ...kind.value.args]);
  if (kind.case === "listExpr") return kind.value.elements;
  if (kind.case === "structExpr") return present(kind.value.entries.flatMap(entryParts));
  if (kind.case !== "comprehensionExpr") return [];
  const { iterRange, accuInit, loopCondition, loopStep, result } = kind.value;
  return present([iterRange, accuInit, loopCondition, loopStep, result]);
}

type Entry = Struct["entries"][number];

export function entryParts(entry: Entry): (Expr | undefined)[] {
  return [entry.keyKind.case === "mapKey" ? entry.keyKind.value : undefined, entry.value];
}

export function present(nodes: readonly (Expr | undefined)[]): readonly Expr[] {
  return nodes.filter((node) => node !== undefined);
}

function treeDepth(root: Expr): number {
  let depth = 0;
  for (let level: readonly Expr[] = [root]; level.length > 0 && depth <= maxTree; depth++) {
    level = level.flatMap(children);
  }
  return depth;
}

/** Counts the nodes of an expression: the cost of evaluating it once. */
export function countNodes(root: Expr): number {
  return 1 + children(root).reduce((count, node) => count + countNodes(node), 0);
}

/** The kind of an expression's value as known before evaluation. `json` is any JSON value; its numbers are doubles. */
type Kind = "bool" | "int" | "double" | "string" | "null" | "time" | "list" | "map" | "json" | "unknown";

export interface Shape {
  readonly kind: Kind;
  /** The only fields, where they are known. */
  readonly fields?: ReadonlyMap<string, Shape>;
  /** The items of a list, or the names in a map. */
  readonly element?: Shape;
  /** Set on a field that not every such map has: what else to do than to guard it with `has`. */
  readonly absence?: string;
}

export const shapes: Readonly<Record<Kind, Shape>> = {
  bool: { kind: "bool" },
  int: { kind: "int" },
  double: { kind: "double" },
  string: { kind: "string" },
  null: { kind: "null" },
  time: { kind: "time" },
  list: { kind: "list" },
  map: { kind: "map" },
  json: { kind: "json" },
  unknown: { kind: "unknown" },
};

/** A map with exactly these fields. */
export function recordShape(fields: Readonly<Record<string, Shape>>): Shape {
  return { kind: "map", fields: new Map(Object.entries(fields)), element: shapes.string };
}
