import { didYouMean } from "../../action/suggestion.ts";
import type { PatternCache } from "./pattern.ts";
import { phasesWith, type Scope } from "./scope.ts";
import {
  type Call,
  type Comprehension,
  type Expr,
  type ExpressionFault,
  entryParts,
  type ParsedExpression,
  type Select,
  type Shape,
  shapes,
} from "./syntax.ts";
import { timeParts } from "./time.ts";

const arithmetic: ReadonlySet<string> = new Set(["_+_", "_-_", "_*_", "_/_", "_%_"]);
const logic: ReadonlySet<string> = new Set(["!_", "_&&_", "_||_"]);
const comparisons: ReadonlySet<string> = new Set(["_==_", "_!=_", "_<_", "_<=_", "_>_", "_>=_", "@in"]);

/** Operators, which need no look-up. */
const operators: ReadonlySet<string> = new Set([
  ...[...arithmetic, ...logic, ...comparisons],
  ...["-_", "_?_:_", "_[_]", "@not_strictly_false"],
]);

interface CheckResult {
  readonly faults: readonly ExpressionFault[];
  /** The shape of the whole expression. */
  readonly shape: Shape;
  /** The fields that are there wherever it is true: `facts.shell` of `has(facts.shell) && tool == "run"`. */
  readonly guards: ReadonlySet<string>;
}

/**
 * Finds faults that would otherwise appear only at evaluation: unknown names, fields and functions, fields that may not be
 * there, bad patterns, mixed arithmetic. `present`: the fields that are certainly there. Compiles and keeps literal patterns.
 */
export function checkExpression(
  parsed: ParsedExpression,
  scope: Scope,
  patterns: PatternCache,
  present: ReadonlySet<string> = new Set(),
): CheckResult {
  const checker = new Checker(parsed, scope, patterns, present);
  const shape = checker.infer(parsed.root, new Map());
  return { faults: checker.faults, shape, guards: new Set(guardsOf(parsed, parsed.root, true)) };
}

/** The fields that are there where a node is true, or where it is false. */
function guardsOf(parsed: ParsedExpression, node: Expr | undefined, outcome: boolean): readonly string[] {
  const kind = node?.exprKind;
  if (kind?.case === "selectExpr") return kind.value.testOnly && outcome ? [fieldText(parsed, kind.value)] : [];
  if (kind?.case !== "callExpr") return [];
  const { function: name, args } = kind.value;
  if (name === "!_") return guardsOf(parsed, args[0], !outcome);
  if (name !== (outcome ? "_&&_" : "_||_")) return [];
  return args.flatMap((arg) => guardsOf(parsed, arg, outcome));
}

function fieldText(parsed: ParsedExpression, { operand, field }: Select): string {
  return `${operand === undefined ? "" : parsed.textOf(operand)}.${field}`;
}

type Locals = ReadonlyMap<string, Shape>;

class Checker {
  readonly faults: ExpressionFault[] = [];
  readonly #parsed: ParsedExpression;
  readonly #scope: Scope;
  readonly #patterns: PatternCache;
  /** The fields that are certainly there at the node that is checked. */
  #present: ReadonlySet<string>;

  constructor(parsed: ParsedExpression, scope: Scope, patterns: PatternCache, present: ReadonlySet<string>) {
    this.#parsed = parsed;
    this.#scope = scope;
    this.#patterns = patterns;
    this.#present = present;
  }

  infer(node: Expr, locals: Locals): Shape {
    const { exprKind: kind } = node;
    if (kind.case === "identExpr") return this.#variable(node, kind.value.name, locals);
    if (kind.case === "constExpr") return this.#literal(node, kind.value.constantKind.case);
    if (kind.case === "selectExpr") return this.#select(node, kind.value, locals);
    if (kind.case === "callExpr") return this.#call(node, kind.value, locals);
    if (kind.case === "comprehensionExpr") return this.#comprehension(kind.value, locals);
    if (kind.case === "listExpr") return this.#list(kind.value.elements, locals);
    if (kind.case === "structExpr") {
      if (kind.value.messageName !== "") this.#fault(node, `unknown type \`${kind.value.messageName}\``);
      for (const part of kind.value.entries.flatMap(entryParts)) if (part !== undefined) this.infer(part, locals);
      return shapes.map;
    }
    return shapes.unknown;
  }

  #fault(node: Expr, message: string): Shape {
    this.faults.push({ offset: this.#parsed.offsetOf(node), message });
    return shapes.unknown;
  }

  #variable(node: Expr, name: string, locals: Locals): Shape {
    const shape = locals.get(name) ?? this.#scope.get(name);
    if (shape !== undefined) return shape;
    const phases = phasesWith(name);
    if (phases.length > 0) {
      const where = phases.map((phase) => `\`${phase}\``).join(" and ");
      return this.#fault(node, `\`${name}\` is available in phase ${where} only; name the phase in \`match\``);
    }
    return this.#fault(
      node,
      `unknown variable \`${name}\`${didYouMean(name, [...locals.keys(), ...this.#scope.keys()])}`,
    );
  }

  #literal(node: Expr, type: string | undefined): Shape {
    if (type === "boolValue") return shapes.bool;
    if (type === "int64Value") return shapes.int;
    if (type === "doubleValue") return shapes.double;
    if (type === "stringValue") return shapes.string;
    if (type === "nullValue") return shapes.null;
    return this.#fault(node, "expected a bool, int, double or text, got bytes or an unsigned integer");
  }

  #select(node: Expr, select: Select, locals: Locals): Shape {
    const operand = select.operand === undefined ? shapes.unknown : this.infer(select.operand, locals);
    const field = this.#field(node, operand, select.field);
    if (select.testOnly) return shapes.bool;
    const text = fieldText(this.#parsed, select);
    if (field.absence === undefined || this.#present.has(text)) return field;
    this.#fault(node, `\`${text}\` may be absent: ${field.absence}, or guard it with \`has(${text})\``);
    return field;
  }

  #field(node: Expr, operand: Shape, name: string): Shape {
    if (operand.fields !== undefined) {
      const field = operand.fields.get(name);
      if (field !== undefined) return field;
      return this.#fault(node, `unknown field \`${name}\`${didYouMean(name, operand.fields.keys())}`);
    }
    if (operand.kind === "json") return shapes.json;
    if (operand.kind === "map" || operand.kind === "unknown") return shapes.unknown;
    return this.#fault(node, `expected a map before \`.${name}\`, got ${operand.kind}`);
  }

  #list(elements: readonly Expr[], locals: Locals): Shape {
    const inferred = elements.map((element) => this.infer(element, locals));
    const first = inferred[0];
    const same = first !== undefined && inferred.every((shape) => shape.kind === first.kind);
    return { kind: "list", element: same ? first : shapes.unknown };
  }

  #call(node: Expr, call: Call, locals: Locals): Shape {
    const target = call.target === undefined ? undefined : this.infer(call.target, locals);
    const args = call.args.map((arg, at) => this.#guarded(guardsBefore(this.#parsed, call, at), arg, locals));
    if (target === undefined && operators.has(call.function)) return this.#operator(node, call.function, args);
    this.#signature(node, call);
    if (call.function === "matches") this.#pattern(call);
    return resultOf(call.function, target);
  }

  #guarded(guards: readonly string[], node: Expr, locals: Locals): Shape {
    const before = this.#present;
    this.#present = new Set([...before, ...guards]);
    const shape = this.infer(node, locals);
    this.#present = before;
    return shape;
  }

  #signature(node: Expr, call: Call): void {
    const known = call.target === undefined ? functionArity : methodArity;
    const arity = Object.hasOwn(known, call.function) ? known[call.function] : undefined;
    if (arity === undefined) {
      const words = call.target === undefined ? [...Object.keys(known), "has"] : [...Object.keys(known), ...macros];
      this.#fault(node, `unknown function \`${call.function}\`${didYouMean(call.function, words)}`);
    } else if (!arity.includes(call.args.length)) {
      const expected = arity.join(" or ");
      this.#fault(node, `expected ${expected} arguments for \`${call.function}\`, got ${call.args.length}`);
    }
  }

  #pattern(call: Call): void {
    const [pattern] = call.args;
    if (pattern?.exprKind.case !== "constExpr") return;
    const { constantKind } = pattern.exprKind.value;
    if (constantKind.case !== "stringValue") return;
    try {
      this.#patterns.keep(constantKind.value);
    } catch (error) {
      this.#fault(pattern, `not an RE2 pattern: ${error instanceof Error ? error.message : String(error)}`);
    }
  }

  #operator(node: Expr, name: string, args: readonly Shape[]): Shape {
    const [left = shapes.unknown, right = shapes.unknown] = args;
    if (logic.has(name) || comparisons.has(name)) return shapes.bool;
    if (name === "_[_]") return this.#index(node, left);
    if (name === "_?_:_") return right.kind === args[2]?.kind ? right : shapes.unknown;
    if (name === "-_") return left;
    return arithmetic.has(name) ? this.#arithmetic(node, name, left, right) : shapes.unknown;
  }

  #index(node: Expr, operand: Shape): Shape {
    if (operand.kind === "json") return shapes.json;
    if (operand.kind === "list") return operand.element ?? shapes.unknown;
    if (operand.kind === "map" || operand.kind === "unknown") return shapes.unknown;
    return this.#fault(node, `expected a list or a map before \`[\`, got ${operand.kind}`);
  }

  /** CEL converts no numbers: `args.count + 1` adds an int to a double and would fail on every action. */
  #arithmetic(node: Expr, name: string, left: Shape, right: Shape): Shape {
    const kinds = [left.kind, right.kind];
    const symbol = name.slice(1, -1);
    const beside = left.kind === "int" ? right.kind : left.kind;
    if (kinds.includes("int") && (beside === "json" || beside === "double")) {
      const number = beside === "json" ? "a number out of JSON, which is a double" : "a double";
      return this.#fault(
        node,
        `expected \`${symbol}\` between two of a kind, got an int and ${number}; write \`1.0\` for \`1\`, or \`int(…)\` around the double`,
      );
    }
    if (name === "_%_" && kinds.includes("double"))
      return this.#fault(node, "expected ints beside `%`, got a double; write `int(…)`");
    return left.kind === right.kind && left.kind !== "json" ? left : shapes.unknown;
  }

  #comprehension(loop: Comprehension, locals: Locals): Shape {
    const range = loop.iterRange === undefined ? shapes.unknown : this.infer(loop.iterRange, locals);
    const start = loop.accuInit === undefined ? shapes.unknown : this.infer(loop.accuInit, locals);
    const item = range.kind === "json" ? shapes.json : (range.element ?? shapes.unknown);
    const result: Shape = start.kind === "list" ? shapes.list : start;
    const inside = new Map([...locals, [loop.iterVar, item], [loop.accuVar, result]]);
    for (const part of [loop.loopCondition, loop.loopStep]) if (part !== undefined) this.infer(part, inside);
    return loop.result === undefined
      ? shapes.unknown
      : this.infer(loop.result, new Map([...locals, [loop.accuVar, result]]));
  }
}

/**
 * The fields that are there wherever the argument at a position counts. `&&` and `||` are commutative in CEL: one that is
 * settled by its right side ignores an error on the left.
 */
function guardsBefore(parsed: ParsedExpression, { function: name, args }: Call, at: number): readonly string[] {
  if (name === "_?_:_") return at === 0 ? [] : guardsOf(parsed, args[0], at === 1);
  if (name !== "_&&_" && name !== "_||_") return [];
  return args.flatMap((arg, other) => (other === at ? [] : guardsOf(parsed, arg, name === "_&&_")));
}

function resultOf(name: string, target: Shape | undefined): Shape {
  if (name === "distinct") return { kind: "list", element: target?.element ?? shapes.unknown };
  if (name === "flatten") return { kind: "list", element: flatElement(target?.element) };
  if (["size", "int", "indexOf", "lastIndexOf"].includes(name) || name.startsWith("get")) return shapes.int;
  if (name === "double") return shapes.double;
  if (["contains", "startsWith", "endsWith", "matches", "glob"].includes(name)) return shapes.bool;
  if (name === "leaves") return { kind: "list", element: leafShape };
  if (name === "split") return { kind: "list", element: shapes.string };
  return ["timestamp", "duration"].includes(name) ? shapes.time : shapes.string;
}

/** The items of a list of lists, or of another list, after flattening. */
function flatElement(element: Shape | undefined): Shape {
  if (element?.kind === "list") return element.element ?? shapes.unknown;
  return element?.kind === "json" ? shapes.json : shapes.unknown;
}

const leafShape: Shape = {
  kind: "map",
  fields: new Map([
    ["key", shapes.string],
    ["text", shapes.string],
  ]),
};

/** These functions, each with the numbers of arguments it takes. */
function functionsOf(counts: readonly number[], names: readonly string[]): Readonly<Record<string, readonly number[]>> {
  return Object.fromEntries(names.map((name) => [name, counts]));
}

/**
 * The functions that a pack may call, with their numbers of arguments (without a method's receiver). All others are
 * refused at load, because they are not metered.
 */
export const functionArity: Readonly<Record<string, readonly number[]>> = {
  ...functionsOf([1], ["size", "int", "double", "string", "timestamp", "duration"]),
  leaves: [1, 2],
};

export const methodArity: Readonly<Record<string, readonly number[]>> = {
  ...functionsOf([0], ["size", "lowerAscii", "upperAscii", "trim", "unescaped", "distinct", "flatten"]),
  ...functionsOf([1], ["contains", "startsWith", "endsWith", "indexOf", "lastIndexOf", "matches", "glob"]),
  ...functionsOf([1], ["split", "charAt"]),
  replace: [2],
  join: [0, 1],
  substring: [1, 2],
  ...functionsOf([0, 1], timeParts),
};

/** The macros that the parser expands; listed for "did you mean". */
const macros = ["all", "exists", "exists_one", "filter", "map"] as const;
