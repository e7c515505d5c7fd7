import type { Decision } from "../action/decision.ts";
import type { ExplainedExpression, ExplainedRule } from "../action/explanation.ts";
import type { Finding } from "../action/policy.ts";
import { escapeHidden, showText } from "../action/visible-text.ts";
import type { ExplainedAction, ExplainedPolicy, Explanation, NearMiss } from "../explain/explained-decision.ts";

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

const notEvaluated = { skipped: "skipped", budget_exceeded: "work budget exceeded", unavailable: "" } as const;

/** Why something was decided, to be read: what decided first, then each policy that spoke, then what nearly did. */
export function describeExplanation(told: Explanation): readonly string[] {
  const speaking = told.policies.filter(
    ({ verdict, findings, rules }) => verdict !== "abstain" || findings.length + rules.length > 0,
  );
  return [
    `${told.decision} (risk ${told.risk}): ${told.why}`,
    ...headOf(told),
    ...speaking.flatMap((policy) => ["", ...describePolicy(policy)]),
    ...(told.near.length === 0 ? [] : ["", "nearest rules that did not decide", ...told.near.flatMap(describeNear)]),
    ...(told.notes.length === 0 ? [] : ["", ...told.notes]),
  ];
}

function headOf({ id, time, phase, action }: Explanation): readonly string[] {
  const { tool, target, capability, principal, session, session_state: state, ticket, task } = action;
  const words = state === null ? "" : `, risk ${state.risk} after ${state.actions} actions`;
  const taints = state === null || state.taints.length === 0 ? "" : `, tainted ${state.taints.join(", ")}`;
  return [
    `  decision    ${id} at ${time}, phase ${phase}`,
    `  action      ${escapeHidden(target)}/${escapeHidden(tool)} (${capability}) by ${escapeHidden(principal)}`,
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
  const says = outcome === "failed" ? "could not be evaluated, blocks" : `decides ${decision}`;
  return [
    `  ${id} ${says}${mode === "shadow" ? " [shadow]" : ""}  ${file}:${line}`,
    ...conditions.flatMap(({ name, expression }) => [`    ${name}`, ...describeExpression(expression, "      ")]),
  ];
}

function messageOf({ rule }: ExplainedRule, findings: ExplainedPolicy["findings"]): readonly string[] {
  const message = findings.find((each) => each.rule === rule)?.message ?? null;
  return message === null ? [] : [`    says: ${escapeHidden(message)}`];
}

function describeFinding({
  rule,
  decision,
  mode,
  message,
  pointer,
}: ExplainedPolicy["findings"][number]): readonly string[] {
  const place = pointer === undefined ? "" : ` at ${escapeHidden(pointer)}`;
  const said = message === null ? "" : `: ${escapeHidden(message)}`;
  return [`  ${escapeHidden(rule)} ${decision}${mode === "shadow" ? " [shadow]" : ""}${place}${said}`];
}

function describeNear({ policy, file, line, rule, decision, mode, why }: NearMiss): readonly string[] {
  const shadow = mode === "shadow" ? " [shadow]" : "";
  return [`  ${rule} would decide ${decision}${shadow}  ${policy} ${file}:${line}`, `    ${why}`];
}

/** One line a part, those of one another indented: `<part>  <value>`. */
function describeExpression(told: ExplainedExpression, indent: string): readonly string[] {
  const { text, outcome, value, parts, more } = told;
  const came =
    outcome === "error" ? `error: ${value}` : (value ?? notEvaluated[outcome as keyof typeof notEvaluated] ?? "");
  return [
    `${indent}${text}${came === "" ? "" : `  → ${came}`}`,
    ...parts.flatMap((part) => describeExpression(part, `${indent}  `)),
    ...(more ? [`${indent}  …`] : []),
  ];
}
