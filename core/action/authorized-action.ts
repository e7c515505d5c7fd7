import { ApprovalGrant } from "./approval.ts";
import type { ActionEnvelope } from "./envelope.ts";
import type { Evaluation } from "./evaluation.ts";

/** Proof that a decision is durable, made by the evidence store. */
export interface DurableDecision {
  readonly actionId: string;
  readonly evaluationId: string;
  /** Sequence number of the decision record in the tenant's chain. */
  readonly seq: number;
}

/**
 * Permission to dispatch exactly one action. Upstreams accept nothing else.
 *
 * INVARIANT: one exists only where an evaluation of this very action said `allow`, or said `review` and a person's
 * approval was consumed for it, and that decision is durable. `core/road/authorize.ts` is the only caller of `authorize`;
 * the architecture test holds that.
 */
export class AuthorizedAction {
  readonly action: ActionEnvelope;
  readonly evaluation: Evaluation;
  /** The approval that was consumed for it; undefined for what policy allowed by itself. */
  readonly approvalId: string | undefined;
  #spent = false;

  private constructor(action: ActionEnvelope, evaluation: Evaluation, approvalId: string | undefined) {
    this.action = action;
    this.evaluation = evaluation;
    this.approvalId = approvalId;
  }

  /** Throws TypeError unless all belong together and the decision is `allow`, or `review` with a grant for it. */
  static authorize(
    action: ActionEnvelope,
    evaluation: Evaluation,
    durable: DurableDecision,
    grant?: ApprovalGrant,
  ): AuthorizedAction {
    const expected = grant === undefined ? "allow" : "review";
    if (evaluation.decision !== expected)
      throw new TypeError(`authorize: expected \`${expected}\`, got \`${evaluation.decision}\``);
    if (evaluation.actionId !== action.id) throw new TypeError("authorize: the evaluation is of another action");
    if (durable.evaluationId !== evaluation.id || durable.actionId !== action.id) {
      throw new TypeError("authorize: the durable decision is of another evaluation");
    }
    if (grant !== undefined) ApprovalGrant.spend(grant, action);
    return new AuthorizedAction(action, evaluation, grant?.approvalId);
  }

  /** Takes the permission. Throws TypeError for a look-alike and for a permission already spent. */
  static spend(permission: AuthorizedAction): ActionEnvelope {
    if (!(#spent in permission)) throw new TypeError("spend: expected an AuthorizedAction made by the gate");
    if (permission.#spent) throw new TypeError("spend: this action was already dispatched");
    permission.#spent = true;
    return permission.action;
  }
}
