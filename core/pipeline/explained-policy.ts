import type { ActionEnvelope } from "../kernel/envelope.ts";
import type { Evaluation, PolicyVerdict } from "../kernel/evaluation.ts";
import type { NearRule, PolicyExplanation } from "../kernel/explanation.ts";
import type { Finding, Policy, PolicyRef, Verdict } from "../kernel/policy.ts";
import type { DecisionSubject, ToldVerdict } from "./explained-decision.ts";
import type { ExplainedFinding, ExplainedPolicy, Standing } from "./explanation.ts";

/** What of a decision's action may be seen. */
export interface Sight {
  /** Null: no value. */
  readonly shown: ActionEnvelope | null;
  /**
   * What policies say where what is hidden is not there: a message that is the same then holds nothing of it. Undefined
   * where nothing is hidden, null where nobody can say what is.
   */
  readonly said: Evaluation | null | undefined;
}

export interface ExplainedVerdict {
  readonly policy: ExplainedPolicy;
  readonly near: readonly NearRule[];
}

/** Why one policy said what it said, by `loaded`, the policy of its kind and name that is in force now. */
export async function explainVerdict(
  verdict: ToldVerdict,
  loaded: Policy | undefined,
  subject: DecisionSubject,
  sight: Sight,
): Promise<ExplainedVerdict> {
  const { policy, mode, decision } = verdict;
  const { told } = subject;
  const standing = await findStanding(verdict, loaded, subject);
  const { rules, near } = standing === "same" ? explainRules(loaded, subject, sight) : nothing;
  const explained: ExplainedPolicy = {
    policy,
    mode,
    verdict: decision,
    decided: mode === "enforce" && !told.byDefault && decision === told.decision,
    error: hideError(verdict, sight),
    standing,
    findings: (verdict.findings ?? []).map((finding) => tellFinding(finding, verdict, sight)),
    rules,
  };
  return { policy: explained, near };
}

const nothing: PolicyExplanation = { rules: [], near: [] };

function explainRules(
  loaded: Policy | undefined,
  { action, told }: DecisionSubject,
  { shown }: Sight,
): PolicyExplanation {
  if (loaded?.book === undefined) return nothing;
  return action === null ? { ...nothing, rules: loaded.book.recall(told.rules) } : loaded.book.explain(action, shown);
}

/**
 * Whether the policy in force is the one that answered. Its files may be the same and its settings others: where the
 * action is there, it has to say the same of it again.
 */
async function findStanding(
  verdict: ToldVerdict,
  loaded: Policy | undefined,
  { action }: DecisionSubject,
): Promise<Standing> {
  if (loaded === undefined) return "gone";
  if (loaded.ref.digest !== verdict.policy.digest) return "changed";
  if (loaded.book === undefined || action === null) return "same";
  const again = await loaded.evaluate(action);
  return isSame(again, verdict) ? "same" : "changed";
}

function isSame(again: Verdict, { decision, findings }: ToldVerdict): boolean {
  if (again.decision !== decision) return false;
  return findings === null || digestOf(again.findings) === digestOf(findings);
}

function digestOf(findings: readonly Finding[]): string {
  return JSON.stringify(findings.map(({ rule, decision, mode }) => [rule, decision, mode]));
}

/** Policies may quote what they judged, and so may what they fail with. */
function hideError({ error, policy }: ToldVerdict, { said }: Sight): string | null {
  if (error === null || said === undefined) return error;
  return verdictIn(said, policy)?.error === error ? error : "[redacted]";
}

function tellFinding(finding: Finding, { policy }: ToldVerdict, { said }: Sight): ExplainedFinding {
  const { rule, decision, severity, mode, pointer, message } = finding;
  const place = pointer === undefined ? {} : { pointer };
  const told = { rule, decision, severity, mode, ...place };
  if (said === undefined) return { ...told, message };
  const found = verdictIn(said, policy)?.findings ?? [];
  const same = found.some((each) => each.rule === rule && each.message === message);
  return { ...told, message: same ? message : null };
}

function verdictIn(said: Evaluation | null, { kind, name }: PolicyRef): PolicyVerdict | undefined {
  const verdicts = said === null ? [] : [...said.verdicts, ...said.shadow];
  return verdicts.find(({ policy }) => policy.kind === kind && policy.name === name);
}
