import type { ExplainedExpression, Mismatch } from "../kernel/explanation.ts";
import { showText } from "./display.ts";

/** Values of the deciding part that are told in a sentence. */
const mostValues = 3;

/** Why a condition came to what it came to: the innermost part that decided it, and the values of what that asks. */
export function describeCondition(name: string, told: ExplainedExpression): string {
  if (told.outcome === "too_dear")
    return `\`${name}\` was not asked: one explanation may take so much work and no more`;
  if (told.outcome === "error") return `\`${name}\` could not be evaluated: ${told.value ?? "no reason is known"}`;
  if (told.outcome === "value") return `\`${name}\` is neither true nor false: ${told.value ?? ""}`;
  const deciding = decidingPart(told);
  // The whole of it stands beside this anyway.
  if (deciding === told && told.outcome === "true") return `\`${name}\` is true`;
  const { text, parts } = deciding;
  const values = parts.filter(({ value }) => value !== null).map(({ text: of, value }) => `\`${of}\` is ${value}`);
  const shown = values.length === 0 ? "" : ` (${values.slice(0, mostValues).join(", ")})`;
  return `\`${name}\` is ${told.outcome}: \`${text}\` is ${told.outcome}${shown}`;
}

/** Down to where more than one part, or none, came to the same: there it was decided. */
function decidingPart(told: ExplainedExpression): ExplainedExpression {
  const same = told.parts.filter(({ outcome }) => outcome === told.outcome);
  const [only] = same;
  return only === undefined || same.length > 1 ? told : decidingPart(only);
}

/** `tool` is `read`, not one of `write*`, `delete`. */
export function describeMismatches(mismatches: readonly Mismatch[]): string {
  return mismatches
    .map(({ key, expected, got }) => {
      const names = expected.map((each) => `\`${showText(each)}\``).join(" or ");
      return `\`${key}\` is \`${showText(got)}\`, expected ${names}`;
    })
    .join("; ");
}
