import {
  type CelFunction,
  type CompiledNode,
  choiceFailure,
  type LoopVariables,
  noOverload,
  operandFailure,
} from "./evaluator.ts";
import { type FunctionTable, meteredFunctions } from "./function.ts";
import { findLeaves } from "./leaf.ts";
import { compileLoop } from "./loop.ts";
import type { Meter } from "./meter.ts";
import { binaryOperators, elementOf, negate, orderTests } from "./operator.ts";
import type { Pattern, PatternCache } from "./pattern.ts";
import { readerOf, unresolved } from "./scope.ts";
import type { Call, Constant, Expr, Select, Struct } from "./syntax.ts";
import { matchLiteral, sizeOfText } from "./text-function.ts";
import {
  CelFailure,
  CelMap,
  type CelResult,
  type CelValue,
  countItems,
  fieldOf,
  hasEntry,
  isInstant,
  isList,
  isMap,
  type MapKey,
} from "./value.ts";

/**
 * Compiles parsed, checked expressions to closures over the plain envelope. Work is charged to `meter`. The closures of
 * one node must not run within each other.
 */
export class ExpressionBuilder {
  readonly meter: Meter;
  readonly #patterns: PatternCache;
  readonly #table: FunctionTable;
  readonly #operators: ReadonlyMap<string, CelFunction>;

  constructor(meter: Meter, patterns: PatternCache) {
    this.meter = meter;
    this.#patterns = patterns;
    this.#table = meteredFunctions(meter, patterns);
    this.#operators = binaryOperators(meter);
  }

  compile(node: Expr, loops: LoopVariables): CompiledNode {
    const { exprKind: kind } = node;
    if (kind.case === "identExpr") return loops.get(kind.value.name) ?? readerOf(kind.value.name);
    if (kind.case === "constExpr") return compileLiteral(kind.value);
    if (kind.case === "selectExpr") return this.#select(kind.value, loops);
    if (kind.case === "callExpr") return this.#call(kind.value, loops);
    if (kind.case === "listExpr") return compileList(this.#all(kind.value.elements, loops));
    if (kind.case === "structExpr") return this.#struct(kind.value, loops);
    if (kind.case === "comprehensionExpr") return compileLoop(kind.value, loops, this);
    throw new TypeError("compile: expected a node of a parsed expression");
  }

  #all(nodes: readonly Expr[], loops: LoopVariables): readonly CompiledNode[] {
    return nodes.map((node) => this.compile(node, loops));
  }

  #select({ operand, field, testOnly }: Select, loops: LoopVariables): CompiledNode {
    const of = this.compile(operand as Expr, loops);
    if (testOnly) return (variables) => hasField(of(variables), field);
    const missing = new CelFailure(`field not found: ${field}`);
    return (variables) => {
      const value = of(variables);
      if (value instanceof CelFailure) return value;
      const found = fieldOf(value, field);
      return found === undefined ? missing : found;
    };
  }

  #call(call: Call, loops: LoopVariables): CompiledNode {
    const { function: name, target, args } = call;
    if (target !== undefined) return this.#method(call, this.compile(target, loops), loops);
    const sized = this.#sizeOrder(call, loops);
    if (sized !== undefined) return sized;
    const operands = this.#all(args, loops);
    const [first, second, third] = operands as [CompiledNode, CompiledNode, CompiledNode];
    if (name === "_&&_") return compileLogic(operands, false);
    if (name === "_||_") return compileLogic(operands, true);
    if (name === "_?_:_") return compileChoice(first, second, third);
    if (name === "_[_]") return compileElement(first, second, args[1]?.exprKind.case === "constExpr");
    if (name === "leaves") return this.#leaves(first, second);
    const operator = this.#operators.get(name) ?? unaryOperators.get(name) ?? this.#table.functions.get(name);
    return compileCall(name, operands, operator, false);
  }

  #method({ function: name, args }: Call, target: CompiledNode, loops: LoopVariables): CompiledNode {
    const pattern = name === "matches" ? this.#literalPattern(args[0]) : undefined;
    if (pattern !== undefined) return compileMatch(target, pattern, this.meter);
    return compileCall(name, [target, ...this.#all(args, loops)], this.#table.methods.get(name), true);
  }

  /** The pattern that is written in the rule, which was compiled with it. */
  #literalPattern(argument: Expr | undefined): Pattern | undefined {
    const literal = argument === undefined ? undefined : literalOf(argument);
    return typeof literal === "string" ? this.#patterns.literals.get(literal) : undefined;
  }

  /** Compiles `size(x) < 9` without making an int of the size; undefined for anything else. */
  #sizeOrder({ function: name, args }: Call, loops: LoopVariables): CompiledNode | undefined {
    const [left, right] = args as [Expr, Expr];
    const limit = orderTests.has(name) ? literalOf(right) : undefined;
    if (typeof limit !== "bigint" || left.exprKind.case !== "callExpr") return undefined;
    const { function: counted, target, args: of } = left.exprKind.value;
    const node = target ?? of[0];
    if (counted !== "size" || node === undefined) return undefined;
    const operand = this.compile(node, loops);
    const { min, max } = sizesOf(name, Number(limit));
    const { meter } = this;
    return (variables) => {
      const value = operand(variables);
      let size: number;
      if (typeof value === "string") size = sizeOfText(value, meter);
      else if (value instanceof CelFailure) return value;
      else if (isList(value)) size = value.length;
      else if (isMap(value)) size = countItems(value, meter);
      else return noOverload(counted, [value], target !== undefined);
      return size >= min && size <= max;
    };
  }

  #leaves(of: CompiledNode, limit: CompiledNode | undefined): CompiledNode {
    const { meter } = this;
    return (variables) => {
      const value = of(variables);
      if (value instanceof CelFailure) return value;
      if (limit === undefined) return findLeaves(variables.leaves, value, Number.POSITIVE_INFINITY, meter);
      const max = limit(variables);
      if (max instanceof CelFailure) return max;
      return typeof max === "bigint"
        ? findLeaves(variables.leaves, value, Number(max), meter)
        : noOverload("leaves", [value, max], false);
    };
  }

  #struct({ entries }: Struct, loops: LoopVariables): CompiledNode {
    const members = entries.map(({ keyKind, value }) => ({
      key: this.compile(keyKind.value as Expr, loops),
      value: this.compile(value as Expr, loops),
    }));
    return (variables) => {
      const made = new Map<MapKey, CelValue>();
      for (const member of members) {
        const key = toKey(member.key(variables));
        if (key instanceof CelFailure) return key;
        const value = member.value(variables);
        if (value instanceof CelFailure) return value;
        if (made.has(key)) return new CelFailure("expected different keys in a map, got one twice");
        made.set(key, value);
      }
      return new CelMap(made);
    };
  }
}

function toKey(value: CelResult): MapKey | CelFailure {
  if (typeof value === "string" || typeof value === "bigint" || typeof value === "boolean") return value;
  if (typeof value === "number" && Number.isInteger(value)) return BigInt(value);
  return new CelFailure("unsupported key type");
}

function compileLiteral({ constantKind: { case: type, value } }: Constant): CompiledNode {
  const literal = type === "nullValue" ? null : (value as CelValue);
  return () => literal;
}

/** The sizes that an ordering operator accepts beside a limit. */
function sizesOf(operator: string, limit: number): { readonly min: number; readonly max: number } {
  if (operator === "_<_") return { min: 0, max: limit - 1 };
  if (operator === "_<=_") return { min: 0, max: limit };
  return { min: operator === "_>_" ? limit + 1 : limit, max: Number.POSITIVE_INFINITY };
}

/** The value of a literal; undefined for other nodes. */
function literalOf({ exprKind: kind }: Expr): unknown {
  return kind.case === "constExpr" ? kind.value.constantKind.value : undefined;
}

function hasField(value: CelResult, field: string): CelResult {
  if (value === unresolved) return false;
  if (value instanceof CelFailure) return value;
  if (isMap(value)) return hasEntry(value, field);
  if (!isInstant(value)) return false;
  const part = fieldOf(value, field);
  return part === undefined ? new CelFailure(`field not found: ${field}`) : part !== 0n;
}

function compileList(elements: readonly CompiledNode[]): CompiledNode {
  return (variables) => {
    const items: CelValue[] = [];
    for (const element of elements) {
      const item = element(variables);
      if (item instanceof CelFailure) return item;
      items.push(item);
    }
    return items;
  };
}

/** `||` (`decisive` is true) or `&&`: the decisive value absorbs what failed before it and after it. */
function compileLogic(operands: readonly CompiledNode[], decisive: boolean): CompiledNode {
  const [first, second] = operands as [CompiledNode, CompiledNode];
  return (variables) => {
    const left = first(variables);
    if (left === decisive) return decisive;
    const right = second(variables);
    if (right === decisive) return decisive;
    if (typeof left !== "boolean") return operandFailure(left);
    return typeof right === "boolean" ? !decisive : operandFailure(right);
  };
}

function compileChoice(condition: CompiledNode, yes: CompiledNode, no: CompiledNode): CompiledNode {
  return (variables) => {
    const chosen = condition(variables);
    if (chosen === true) return yes(variables);
    return chosen === false ? no(variables) : choiceFailure(chosen);
  };
}

/** Matches a text with a pattern that is written in the rule. */
function compileMatch(target: CompiledNode, pattern: Pattern, meter: Meter): CompiledNode {
  return (variables) => {
    const text = target(variables);
    if (typeof text === "string") return matchLiteral(pattern, text, meter);
    return text instanceof CelFailure ? text : noOverload("matches", [text], true);
  };
}

function compileElement(collection: CompiledNode, index: CompiledNode, isLiteral: boolean): CompiledNode {
  return (variables) => {
    const value = collection(variables);
    if (value instanceof CelFailure) return value;
    const key = index(variables);
    return key instanceof CelFailure ? key : elementOf(value, key, isLiteral);
  };
}

const unaryOperators: ReadonlyMap<string, CelFunction> = new Map<string, CelFunction>([
  ["!_", (value) => (typeof value === "boolean" ? !value : undefined)],
  ["-_", negate],
]);

/** Evaluates the operands in order, up to one that fails. */
function compileCall(
  name: string,
  [first, second, third]: readonly CompiledNode[],
  call: CelFunction | undefined,
  isMethod: boolean,
): CompiledNode {
  if (call === undefined || first === undefined) throw new TypeError(`compile: expected a known function, got ${name}`);
  if (second === undefined) {
    return (variables) => {
      const a = first(variables);
      if (a instanceof CelFailure) return a;
      const result = call(a, undefined, undefined);
      return result === undefined ? noOverload(name, [a], isMethod) : result;
    };
  }
  return (variables) => {
    const a = first(variables);
    if (a instanceof CelFailure) return a;
    const b = second(variables);
    if (b instanceof CelFailure) return b;
    const c = third?.(variables);
    if (c instanceof CelFailure) return c;
    const result = call(a, b, c);
    if (result !== undefined) return result;
    return noOverload(name, c === undefined ? [a, b] : [a, b, c], isMethod);
  };
}
