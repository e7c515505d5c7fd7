import { escapeHidden } from "../kernel/visible-text.ts";
import type { DecisionSubject, ToldEvaluation } from "./explained-decision.ts";
import type { ExplainedPolicy, ExplainedValues } from "./explanation.ts";

/** Why a decision is what it is, in a sentence: the first rule that made it, the policy that failed, or the default. */
export function describeDecision(told: ToldEvaluation, policies: readonly ExplainedPolicy[]): string {
  const { byDefault, decision, phase } = told;
  if (byDefault) return `no rule that counts speaks of it, so phase ${phase} takes its default: ${decision}`;
  const failed = policies.find(({ decided, error }) => decided && error !== null);
  if (failed !== undefined) return `${nameOf(failed)} could not answer, so the action is blocked`;
  const [rule = ""] = told.rules;
  const named = rule === "" ? decision : `\`${escapeHidden(rule)}\` decides ${decision}`;
  for (const policy of policies) {
    const read = policy.rules.find((each) => each.rule === rule);
    if (read !== undefined) return `${named} (${nameOf(policy)}, ${read.file}:${read.line}): ${read.why}`;
  }
  const deciding = policies.find(({ decided }) => decided);
  return deciding === undefined ? named : `${named} (${nameOf(deciding)})`;
}

/** What limits an explanation, each a sentence. */
export function notesOf(
  { source, told }: DecisionSubject,
  values: ExplainedValues,
  policies: readonly ExplainedPolicy[],
): readonly string[] {
  return [
    ...(source === "evidence" ? [keptNoMore] : []),
    ...(source === "memory" && told.phase === "output" ? [answerKeptNoMore] : []),
    ...(values === "redacted" ? ["What plugins point at, or would redact, stands here as `[redacted]`."] : []),
    ...(values === "withheld" ? ["No value is told: a plugin could not say what of this action is to be hidden."] : []),
    ...policies.flatMap(describeStanding),
  ];
}

const keptNoMore =
  "Arguments are not kept with the evidence, so no value can be told: this is what the record says, and where the rules stand.";
const answerKeptNoMore = "Answers are kept nowhere, so no value can be told: this is what was found in this one.";

function describeStanding(policy: ExplainedPolicy): readonly string[] {
  if (policy.standing === "gone") return [`${nameOf(policy)} is not loaded any more, so its rules are not told.`];
  if (policy.standing === "same") return [];
  return [
    `${nameOf(policy)} is loaded otherwise now (its files, settings or rules on trial), so its rules are not told.`,
  ];
}

function nameOf({ policy: { kind, name, version } }: ExplainedPolicy): string {
  return `${kind} ${name} ${version}`;
}
