import { RE2JS } from "@bufbuild/re2";
import type { Meter } from "../../../core/policy/cel/meter.ts";
import { compilePattern } from "../../../core/policy/cel/pattern.ts";
import type { Expr } from "../../../core/policy/cel/syntax.ts";

type OraclePattern = ReturnType<typeof compilePattern>;

/** The patterns of an expression, matched by RE2 alone, at the prices that core asks. */
export class OraclePatterns {
  literals: ReadonlyMap<string, OraclePattern> = new Map();

  get(source: string): OraclePattern {
    return matchedByEngine(source, false);
  }
}

/** The patterns that are written in an expression, by source. */
export function literalsOf(root: Expr): ReadonlyMap<string, OraclePattern> {
  const literals = new Map<string, OraclePattern>();
  JSON.stringify(root, (_, value: unknown) => {
    const call = value as { readonly function?: unknown; readonly args?: readonly Expr[] } | null;
    const [pattern] = call?.function === "matches" ? (call.args ?? []) : [];
    const constant = pattern?.exprKind.case === "constExpr" ? pattern.exprKind.value.constantKind : undefined;
    if (constant?.case === "stringValue") literals.set(constant.value, matchedByEngine(constant.value, true));
    return typeof value === "bigint" ? null : value;
  });
  return literals;
}

function matchedByEngine(source: string, isLiteral: boolean): OraclePattern {
  const priced = compilePattern(source, isLiteral);
  const engine = RE2JS.compile(source);
  return {
    bytes: 0,
    test(text: string, meter?: Meter): boolean {
      // For its price and its limits alone.
      priced.test(text, meter);
      return engine.test(text);
    },
  };
}
