import type { ActionRecord } from "../evidence/record.ts";
import type { ActionEnvelope } from "../kernel/envelope.ts";
import { GatewayError } from "../kernel/error.ts";
import type { Evaluation } from "../kernel/evaluation.ts";
import { mostNear } from "../kernel/explanation.ts";
import type { Policy, PolicyRef } from "../kernel/policy.ts";
import { type DecisionSubject, recordedSubject, subjectOf } from "./explained-decision.ts";
import { type ExplainedVerdict, explainVerdict, type Sight } from "./explained-policy.ts";
import { describeDecision, notesOf } from "./explained-text.ts";
import type { ExplainedValues, Explanation } from "./explanation.ts";
import { type Evaluator, evaluateOrBlock } from "./fail-closed.ts";
import { showAction } from "./shown-action.ts";

export interface ExplainerParts {
  readonly chain: Evaluator & { find(ref: Pick<PolicyRef, "kind" | "name">): Policy | undefined };
  /** What was decided lately. */
  readonly recent: { find(tenant: string, id: string): RecentDecision | undefined };
  /** The record of a decision; undefined where there is none. */
  readonly recorded: (tenant: string, id: string) => Promise<ActionRecord | undefined>;
  /** The action that this evaluation held for the approval of that id; undefined where it is not kept whole any more. */
  readonly held: (tenant: string, approval: string, evaluation: string) => Promise<ActionEnvelope | undefined>;
  /** The action without what is never kept of it; the action itself where that is nothing. */
  readonly hide: (action: ActionEnvelope) => ActionEnvelope;
  readonly newId: () => string;
}

interface RecentDecision {
  readonly action: ActionEnvelope;
  readonly evaluation: Evaluation;
}

/**
 * Says why something was decided, from what is left of it: nothing is dispatched, held or counted of a session. What is
 * told of the action is what those may see who may see its private fields.
 */
export class Explainer {
  readonly #parts: ExplainerParts;

  constructor(parts: ExplainerParts) {
    this.#parts = parts;
  }

  /** `id`: of a decision of the tenant, or of its action. Rejects with NOT_FOUND for a foreign id as for an unknown one. */
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

  /** Why policy says that of an action which is only described. */
  explainRequest(action: ActionEnvelope, evaluation: Evaluation): Promise<Explanation> {
    return this.#explain(subjectOf("request", action, evaluation));
  }

  async #explain(subject: DecisionSubject): Promise<Explanation> {
    const { told, source, summary, time } = subject;
    const { values, ...sight } = await this.#look(subject);
    const verdicts: ExplainedVerdict[] = [];
    for (const verdict of told.verdicts) {
      const loaded = this.#parts.chain.find(verdict.policy);
      verdicts.push(await explainVerdict(verdict, loaded, subject, sight));
    }
    const policies = verdicts.map(({ policy }) => policy);
    const { id, phase, decision, byDefault, risk, rules } = told;
    return {
      ...{ id, time, phase, decision, by_default: byDefault, risk, rules },
      why: describeDecision(told, policies),
      source,
      values,
      action: summary,
      policies,
      near: nearestOf(verdicts),
      notes: notesOf(subject, values, policies),
    };
  }

  async #look({ action, told }: DecisionSubject): Promise<Sight & { readonly values: ExplainedValues }> {
    const { chain, newId } = this.#parts;
    // What was found in an answer may quote it.
    if (action === null) return { shown: null, said: told.phase === "output" ? null : undefined, values: "not_kept" };
    const seen = await showAction(this.#parts, action);
    if (seen === null) return { shown: null, said: null, values: "withheld" };
    if (!seen.isRedacted) return { shown: seen.action, said: undefined, values: "shown" };
    const past = action.history === undefined ? {} : { history: action.history };
    const said = await evaluateOrBlock(chain, { ...seen.action, ...past }, newId);
    return { shown: seen.action, said, values: "redacted" };
  }
}

function nearestOf(verdicts: readonly ExplainedVerdict[]): Explanation["near"] {
  return verdicts
    .flatMap(({ policy, near }) => near.map(({ distance, rule }) => ({ distance, rule, policy: policy.policy.name })))
    .sort((a, b) => a.distance - b.distance)
    .slice(0, mostNear)
    .map(({ rule, policy }) => ({ ...rule, policy }));
}
