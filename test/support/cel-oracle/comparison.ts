import { isCelList, isCelMap, type CelValue as OracleValue } from "@bufbuild/cel";
import { factKinds } from "../../../core/action/action-fact.ts";
import type { ActionEnvelope } from "../../../core/action/envelope.ts";
import { CelEngine, type Expression, ExpressionError } from "../../../core/policy/cel/engine.ts";
import { evaluationUnits } from "../../../core/policy/cel/meter.ts";
import { type PackVariables, type Scope, type Variables, variablesOf } from "../../../core/policy/cel/scope.ts";
import { type CelValue, entriesOf, isInstant, isList, isMap } from "../../../core/policy/cel/value.ts";
import { CelOracle } from "./engine.ts";

/** The result of an evaluation in a form that two evaluators have in common. */
interface ComparableResult {
  /** The value as text, `error` or `spent`. */
  readonly result: string;
  /** The units spent; undefined where the budget was. */
  readonly units: number | undefined;
}

export interface ComparedResult {
  readonly compiled: ComparableResult;
  readonly oracle: ComparableResult;
}

type Compare = (action: ActionEnvelope, pack: PackVariables, units?: number) => ComparedResult;

/** The rule matches whatever the expression needs; an action that lacks it is an error to both. */
const everyFact: ReadonlySet<string> = new Set([...factKinds, "calls"].map((kind) => `facts.${kind}`));

/** Evaluates expressions by core's compiler and by the library's planner. */
export class CelComparison {
  readonly #scope: Scope;
  readonly #oracle = new CelOracle();

  constructor(scope: Scope) {
    this.#scope = scope;
  }

  /** Compiles an expression for both; undefined where our check refuses it. */
  prepare(text: string): Compare | undefined {
    const engine = new CelEngine();
    const compiled = engine.compile(text, this.#scope, everyFact);
    if ("faults" in compiled) return undefined;
    const planned = this.#oracle.prepare(text);
    return (action, pack, units = evaluationUnits) => {
      engine.meter.left = units;
      const result = evaluate(compiled.expression, variablesOf(action, pack));
      const ours = comparable(result, units, engine.meter.left);
      this.#oracle.refill(units);
      const found = planned(action, pack);
      const theirs = comparable("value" in found ? writeOracle(found.value) : "error", units, this.#oracle.left);
      return { compiled: ours, oracle: theirs };
    };
  }
}

function evaluate(expression: Expression, variables: Variables): string {
  try {
    return writeValue(expression.evaluate(variables));
  } catch (error) {
    if (!(error instanceof ExpressionError)) throw error;
    return "error";
  }
}

function comparable(result: string, units: number, left: number): ComparableResult {
  return left < 0 ? { result: "spent", units: undefined } : { result, units: units - left };
}

function writeValue(value: CelValue): string {
  if (isList(value)) return `[${value.map(writeValue).join(", ")}]`;
  if (isMap(value)) return writeMap(Array.from(entriesOf(value), ([key, item]) => [key, writeValue(item)]));
  if (isInstant(value)) return `${value.type} ${value.seconds}.${value.nanos}`;
  return writeScalar(value);
}

function writeOracle(value: OracleValue): string {
  if (isCelList(value)) return `[${Array.from(value, writeOracle).join(", ")}]`;
  if (isCelMap(value)) return writeMap(Array.from(value, ([key, item]) => [key, writeOracle(item)]));
  if (typeof value === "object" && value !== null && "message" in value) {
    const { seconds, nanos } = value.message as unknown as { seconds: bigint; nanos: number };
    return `${value.desc.typeName} ${seconds}.${nanos}`;
  }
  return writeScalar(value);
}

function writeMap(entries: readonly (readonly [unknown, string])[]): string {
  return `{${entries.map(([key, item]) => `${writeScalar(key)}: ${item}`).join(", ")}}`;
}

function writeScalar(value: unknown): string {
  if (typeof value === "string") return JSON.stringify(value);
  if (typeof value === "number") return `double ${Object.is(value, -0) ? "-0" : value}`;
  return `${typeof value} ${String(value)}`;
}
