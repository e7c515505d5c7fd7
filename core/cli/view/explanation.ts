import type { Decision } from "../../action/decision.ts";
import type { ExplainedExpression, ExplainedRule } from "../../action/explanation.ts";
import type { Finding } from "../../action/policy.ts";
import { escapeHidden, showText } from "../../action/visible-text.ts";
import type { ExplainedAction, ExplainedPolicy, Explanation, NearMiss } from "../../explain/explained-decision.ts";
import { answerView, type View } from "../admin-view.ts";

export const decisionExplanation: View = answerView<Explanation>((explained) => {
  return { text: describeExplanation(explained).join("\n") };
});

/** An evaluation in an answer of the admin port, as far as it is printed. */
export interface EvaluationAnswer {
  readonly decision: Decision;
  readonly by_default: boolean;
  readonly risk: number;
  readonly rules: readonly string[];
  readonly verdicts: readonly VerdictAnswer[];
  readonly shadow: readonly VerdictAnswer[];
  /** Present where it was requested. */
  readonly explanation?: Explanation;
}

interface VerdictAnswer {
  readonly policy: { readonly kind: string; readonly name: string; readonly version: string };
  readonly decision: string;
  readonly findings: readonly Finding[];
  readonly error?: string;
  readonly replayable?: false;
}

/** Renders an evaluation: `review (risk 40): files.large-write`, then a line for each policy with a verdict. */
export function describeEvaluation(evaluation: EvaluationAnswer): readonly string[] {
  const { decision, risk, verdicts, shadow } = evaluation;
  return [
    `${decision} (risk ${risk}): ${decisionReason(evaluation)}`,
    ...verdicts.flatMap((verdict) => describeVerdict(verdict, "")),
    ...shadow.flatMap((verdict) => describeVerdict(verdict, " [shadow]")),
  ];
}

/** The reason of a decision in a few words. */
export function decisionReason({ by_default: byDefault, rules }: EvaluationAnswer): string {
  if (byDefault) return "by default, no rule matches";
  return rules.length === 0 ? "a policy failed" : rules.join(", ");
}

function describeVerdict(
  { policy, decision, findings, error, replayable }: VerdictAnswer,
  mode: string,
): readonly string[] {
  if (decision === "abstain" && findings.length === 0) return [];
  const failed = error === undefined ? "" : `; ${showText(error)}`;
  const server = replayable === false ? "; decided by another server, not replayable" : "";
  return [
    `  ${policy.kind} ${policy.name} ${policy.version}${mode}: ${decision}${failed}${server}`,
    ...findings.map(
      (each) =>
        `    ${each.rule} ${each.decision}${each.mode === "shadow" ? " [shadow]" : ""}: ${showText(each.message)}`,
    ),
  ];
}

const notEvaluated = { skipped: "skipped", budget_exceeded: "work budget exceeded", unavailable: "" } as const;

/** Renders an explanation: the deciding rule, then each policy with a verdict, then the rules that nearly decided. */
export function describeExplanation(explained: Explanation): readonly string[] {
  const speaking = explained.policies.filter(
    ({ verdict, findings, rules }) => verdict !== "abstain" || findings.length + rules.length > 0,
  );
  return [
    `${explained.decision} (risk ${explained.risk}): ${explained.why}`,
    ...headOf(explained),
    ...speaking.flatMap((policy) => ["", ...describePolicy(policy)]),
    ...(explained.near.length === 0
      ? []
      : ["", "nearest rules that did not decide", ...explained.near.flatMap(describeNear)]),
    ...(explained.notes.length === 0 ? [] : ["", ...explained.notes]),
  ];
}

function headOf({ id, time, phase, action, does }: Explanation): readonly string[] {
  const { tool, target, capability, principal, session, session_state: state, ticket, task } = action;
  const words = state === null ? "" : `, risk ${state.risk} after ${state.actions} actions`;
  const taints = state === null || state.taints.length === 0 ? "" : `, tainted ${state.taints.join(", ")}`;
  return [
    `  decision    ${id} at ${time}, phase ${phase}`,
    `  action      ${escapeHidden(target)}/${escapeHidden(tool)} (${capability}) by ${escapeHidden(principal)}`,
    ...(does.length === 0 ? [] : [`  does        ${does.join("; ")}`]),
    `  session     ${session}${words}${taints}`,
    ...(task === null ? [] : [`  task        ${escapeHidden(task)}`]),
    ...(ticket === null ? [] : [`  ticket      ${describeTicket(ticket)}`]),
  ];
}

function describeTicket({ id, standing }: NonNullable<ExplainedAction["ticket"]>): string {
  return `${id === null ? "" : `${escapeHidden(id)} `}${standing}`;
}

function describePolicy({
  policy,
  mode,
  verdict,
  decided,
  error,
  findings,
  rules,
}: ExplainedPolicy): readonly string[] {
  const shadow = mode === "shadow" ? " [shadow]" : "";
  const failed = error === null ? "" : `; could not answer: ${escapeHidden(error)}`;
  const read = new Set(rules.map(({ rule }) => rule));
  return [
    `${policy.kind} ${policy.name} ${policy.version}${shadow}: ${verdict}${decided ? ", which decided" : ""}${failed}`,
    ...rules.flatMap((rule) => [...describeRule(rule), ...messageOf(rule, findings)]),
    ...findings.filter(({ rule }) => !read.has(rule)).flatMap(describeFinding),
  ];
}

function describeRule(rule: ExplainedRule): readonly string[] {
  const { rule: id, decision, mode, outcome, file, line, conditions } = rule;
  const effect = outcome === "failed" ? "could not be evaluated, blocks" : `decides ${decision}`;
  return [
    `  ${id} ${effect}${mode === "shadow" ? " [shadow]" : ""}  ${file}:${line}`,
    ...conditions.flatMap(({ name, expression }) => [`    ${name}`, ...describeExpression(expression, "      ")]),
  ];
}

function messageOf({ rule }: ExplainedRule, findings: ExplainedPolicy["findings"]): readonly string[] {
  const message = findings.find((each) => each.rule === rule)?.message ?? null;
  return message === null ? [] : [`    message: ${escapeHidden(message)}`];
}

function describeFinding({
  rule,
  decision,
  mode,
  message,
  pointer,
}: ExplainedPolicy["findings"][number]): readonly string[] {
  const place = pointer === undefined ? "" : ` at ${escapeHidden(pointer)}`;
  const text = message === null ? "" : `: ${escapeHidden(message)}`;
  return [`  ${escapeHidden(rule)} ${decision}${mode === "shadow" ? " [shadow]" : ""}${place}${text}`];
}

function describeNear({ policy, file, line, rule, decision, mode, why }: NearMiss): readonly string[] {
  const shadow = mode === "shadow" ? " [shadow]" : "";
  return [`  ${rule} would decide ${decision}${shadow}  ${policy} ${file}:${line}`, `    ${why}`];
}

/** One line a part, those of one another indented: `<part>  <value>`. */
function describeExpression(explained: ExplainedExpression, indent: string): readonly string[] {
  const { text, outcome, value, parts, more } = explained;
  const result =
    outcome === "error" ? `error: ${value}` : (value ?? notEvaluated[outcome as keyof typeof notEvaluated] ?? "");
  return [
    `${indent}${text}${result === "" ? "" : `  → ${result}`}`,
    ...parts.flatMap((part) => describeExpression(part, `${indent}  `)),
    ...(more ? [`${indent}  …`] : []),
  ];
}
