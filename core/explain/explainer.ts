import type { ActionEnvelope } from "../action/envelope.ts";
import { GatewayError } from "../action/error.ts";
import type { Evaluation, PolicyVerdict } from "../action/evaluation.ts";
import { maxNear, type NearRule, type PolicyExplanation } from "../action/explanation.ts";
import type { Finding, Policy, PolicyRef, Verdict } from "../action/policy.ts";
import { escapeHidden } from "../action/visible-text.ts";
import { summarizeAction } from "../approval/summary.ts";
import type { ActionRecord } from "../evidence/record/record.ts";
import { type Evaluator, evaluateOrBlock } from "../road/run.ts";
import {
  type DecisionSubject,
  type DescribedEvaluation,
  type DescribedVerdict,
  type ExplainedFinding,
  type ExplainedPolicy,
  type ExplainedValues,
  type Explanation,
  type PolicyStatus,
  recordedSubject,
  subjectOf,
} from "./explained-decision.ts";
import { renderAction, type ShowParts } from "./rendered-action.ts";

interface ExplainerParts extends ShowParts {
  readonly chain: Evaluator & { find(ref: Pick<PolicyRef, "kind" | "name">): Policy | undefined };
  /** The recent decisions. */
  readonly recent: { find(tenant: string, id: string): RecentDecision | undefined };
  /** Returns the record of a decision. */
  readonly recorded: (tenant: string, id: string) => Promise<ActionRecord | undefined>;
  /**
   * Returns the action that this evaluation held for the approval of that id; undefined where it is no longer kept
   * whole.
   */
  readonly held: (tenant: string, approval: string, evaluation: string) => Promise<ActionEnvelope | undefined>;
}

interface RecentDecision {
  readonly action: ActionEnvelope;
  readonly evaluation: Evaluation;
}

/**
 * Explains decisions from what is kept of them, without side effects on sessions or dispatch. Shows values of the
 * action to callers who may read its private fields.
 */
export class Explainer {
  readonly #parts: ExplainerParts;

  constructor(parts: ExplainerParts) {
    this.#parts = parts;
  }

  /**
   * Explains a decision by its id or its action's. Rejects with NOT_FOUND for an id of another tenant as for an unknown
   * one.
   */
  async explain(tenant: string, id: string): Promise<Explanation> {
    const known = this.#parts.recent.find(tenant, id);
    if (known !== undefined) return this.#explain(subjectOf("memory", known.action, known.evaluation));
    const subject = await this.#recordedSubject(tenant, id);
    if (subject === undefined) throw new GatewayError("NOT_FOUND", "no such decision");
    return this.#explain(subject);
  }

  async #recordedSubject(tenant: string, id: string): Promise<DecisionSubject | undefined> {
    const record = await this.#parts.recorded(tenant, id);
    if (record?.evaluation === undefined) return undefined;
    const { approval, evaluation } = record;
    const held = approval && (await this.#parts.held(tenant, approval.id, evaluation.id));
    return recordedSubject(record, held);
  }

  /** Explains the evaluation of a described action. */
  explainRequest(action: ActionEnvelope, evaluation: Evaluation): Promise<Explanation> {
    return this.#explain(subjectOf("request", action, evaluation));
  }

  async #explain(subject: DecisionSubject): Promise<Explanation> {
    const { evaluation, source, summary, time } = subject;
    const { values, ...sight } = await this.#look(subject);
    const verdicts: ExplainedVerdict[] = [];
    for (const verdict of evaluation.verdicts) {
      const loaded = this.#parts.chain.find(verdict.policy);
      verdicts.push(await explainVerdict(verdict, loaded, subject, sight));
    }
    const policies = verdicts.map(({ policy }) => policy);
    const { id, phase, decision, byDefault, risk, rules } = evaluation;
    return {
      ...{ id, time, phase, decision, by_default: byDefault, risk, rules },
      why: describeDecision(evaluation, policies),
      source,
      values,
      action: summary,
      does: sight.shown === null ? [] : summarizeAction(sight.shown).does,
      policies,
      near: nearestOf(verdicts),
      notes: notesOf(subject, values, policies),
    };
  }

  async #look({ action, evaluation }: DecisionSubject): Promise<Sight & { readonly values: ExplainedValues }> {
    const { chain, newId } = this.#parts;
    // Findings about an output may quote it.
    if (action === null)
      return { shown: null, said: evaluation.phase === "output" ? null : undefined, values: "unavailable" };
    const seen = await renderAction(this.#parts, action);
    if (seen === null) return { shown: null, said: null, values: "withheld" };
    if (!seen.isRedacted) return { shown: seen.action, said: undefined, values: "shown" };
    const past = action.history === undefined ? {} : { history: action.history };
    const said = await evaluateOrBlock({ policies: chain, subscribers: [], newId }, { ...seen.action, ...past });
    return { shown: seen.action, said, values: "redacted" };
  }
}

function nearestOf(verdicts: readonly ExplainedVerdict[]): Explanation["near"] {
  return verdicts
    .flatMap(({ policy, near }) => near.map(({ distance, rule }) => ({ distance, rule, policy: policy.policy.name })))
    .sort((a, b) => a.distance - b.distance)
    .slice(0, maxNear)
    .map(({ rule, policy }) => ({ ...rule, policy }));
}

/** The visible part of a decision's action. */
interface Sight {
  /** Null where no value may be shown. */
  readonly shown: ActionEnvelope | null;
  /**
   * The evaluation of the visible action: a message that is the same there contains no hidden value. Undefined where
   * nothing is hidden, null where the hidden parts are unknown.
   */
  readonly said: Evaluation | null | undefined;
}

interface ExplainedVerdict {
  readonly policy: ExplainedPolicy;
  readonly near: readonly NearRule[];
}

/** Explains the verdict of one policy by `loaded`, the policy of its kind and name that is active now. */
async function explainVerdict(
  verdict: DescribedVerdict,
  loaded: Policy | undefined,
  subject: DecisionSubject,
  sight: Sight,
): Promise<ExplainedVerdict> {
  const { policy, mode, decision } = verdict;
  const { evaluation } = subject;
  const standing = await findStanding(verdict, loaded, subject);
  const { rules, near } = standing === "same" ? explainRules(loaded, subject, sight) : nothing;
  const explained: ExplainedPolicy = {
    policy,
    mode,
    verdict: decision,
    decided: mode === "enforce" && !evaluation.byDefault && decision === evaluation.decision,
    error: hideError(verdict, sight),
    ...verdict.server,
    standing,
    findings: (verdict.findings ?? []).map((finding) => explainFinding(finding, verdict, sight)),
    rules,
  };
  return { policy: explained, near };
}

const nothing: PolicyExplanation = { rules: [], near: [] };

function explainRules(
  loaded: Policy | undefined,
  { action, evaluation }: DecisionSubject,
  { shown }: Sight,
): PolicyExplanation {
  if (loaded?.explainer === undefined) return nothing;
  return action === null
    ? { ...nothing, rules: loaded.explainer.describeRules(evaluation.rules) }
    : loaded.explainer.explain(action, shown);
}

/**
 * Compares the active policy with the one that gave the verdict. Files may be equal and settings changed: where the
 * action is kept, it must return the same verdict again.
 */
async function findStanding(
  verdict: DescribedVerdict,
  loaded: Policy | undefined,
  { action }: DecisionSubject,
): Promise<PolicyStatus> {
  if (loaded === undefined) return "gone";
  if (loaded.ref.digest !== verdict.policy.digest) return "changed";
  if (loaded.explainer === undefined || action === null) return "same";
  try {
    return isSame(await loaded.evaluate(action), verdict) ? "same" : "changed";
  } catch {
    return verdict.error === null ? "changed" : "same";
  }
}

function isSame(again: Verdict, { decision, findings }: DescribedVerdict): boolean {
  if (again.decision !== decision) return false;
  return findings === null || digestOf(again.findings) === digestOf(findings);
}

function digestOf(findings: readonly Finding[]): string {
  return JSON.stringify(findings.map(({ rule, decision, mode }) => [rule, decision, mode]));
}

/** Policies may quote their input in errors. */
function hideError({ error, policy }: DescribedVerdict, { said }: Sight): string | null {
  if (error === null || said === undefined) return error;
  return verdictIn(said, policy)?.error === error ? error : "[redacted]";
}

function explainFinding(finding: Finding, { policy }: DescribedVerdict, { said }: Sight): ExplainedFinding {
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

/** Summarises a decision in one sentence: the first determining rule, the policy that failed, or the default. */
function describeDecision(told: DescribedEvaluation, policies: readonly ExplainedPolicy[]): string {
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

/** The limits of an explanation, one sentence each. */
function notesOf(
  { source, evaluation }: DecisionSubject,
  values: ExplainedValues,
  policies: readonly ExplainedPolicy[],
): readonly string[] {
  return [
    ...(source === "evidence" ? [keptNoMore] : []),
    ...(source === "memory" && evaluation.phase === "output" ? [answerKeptNoMore] : []),
    ...(values === "redacted" ? ["What plugins point at, or would redact, stands here as `[redacted]`."] : []),
    ...(values === "withheld" ? ["No value is told: a plugin could not say what of this action is to be hidden."] : []),
    ...policies.flatMap(describeStanding),
  ];
}

const keptNoMore =
  "Arguments are not kept with the evidence, so no value can be told: this is what the record says, and where the rules stand.";
const answerKeptNoMore = "Answers are kept nowhere, so no value can be told: this is what was found in this one.";

function describeStanding(policy: ExplainedPolicy): readonly string[] {
  if (policy.replayable === false) {
    const digest = policy.answer_digest === undefined ? "" : ` (answer ${policy.answer_digest})`;
    return [`Another server decides for ${nameOf(policy)}${digest}: asked again, it may decide otherwise.`];
  }
  if (policy.standing === "gone") return [`${nameOf(policy)} is not loaded any more, so its rules are not told.`];
  if (policy.standing === "same") return [];
  return [
    `${nameOf(policy)} is loaded otherwise now (its files, settings or rules on trial), so its rules are not told.`,
  ];
}

function nameOf({ policy: { kind, name, version } }: ExplainedPolicy): string {
  return `${kind} ${name} ${version}`;
}
