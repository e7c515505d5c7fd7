import type { Decision } from "../kernel/decision.ts";
import type { Finding } from "../kernel/policy.ts";
import type { Explanation } from "../pipeline/explanation.ts";
import { showText } from "../policy/display.ts";

/** An evaluation as `POST /admin/v1/test-action` answers it, as far as it is printed. */
export interface ToldEvaluation {
  readonly decision: Decision;
  readonly by_default: boolean;
  readonly risk: number;
  readonly rules: readonly string[];
  readonly verdicts: readonly ToldVerdict[];
  readonly shadow: readonly ToldVerdict[];
  /** Where it was asked for. */
  readonly explanation?: Explanation;
}

interface ToldVerdict {
  readonly policy: { readonly kind: string; readonly name: string; readonly version: string };
  readonly decision: string;
  readonly findings: readonly Finding[];
  readonly error?: string;
}

/** `review (risk 40): files.large-write`, and a line for each policy that said something. */
export function describeEvaluation(evaluation: ToldEvaluation): readonly string[] {
  const { decision, risk, verdicts, shadow } = evaluation;
  return [
    `${decision} (risk ${risk}): ${reasonOf(evaluation)}`,
    ...verdicts.flatMap((verdict) => describeVerdict(verdict, "")),
    ...shadow.flatMap((verdict) => describeVerdict(verdict, " [shadow]")),
  ];
}

/** Why, in a few words. */
export function reasonOf({ by_default: byDefault, rules }: ToldEvaluation): string {
  if (byDefault) return "by default, no rule speaks of it";
  return rules.length === 0 ? "a policy could not answer" : rules.join(", ");
}

function describeVerdict({ policy, decision, findings, error }: ToldVerdict, mode: string): readonly string[] {
  if (decision === "abstain" && findings.length === 0) return [];
  const failed = error === undefined ? "" : `; ${showText(error)}`;
  return [
    `  ${policy.kind} ${policy.name} ${policy.version}${mode}: ${decision}${failed}`,
    ...findings.map(
      (each) =>
        `    ${each.rule} ${each.decision}${each.mode === "shadow" ? " [shadow]" : ""}: ${showText(each.message)}`,
    ),
  ];
}
