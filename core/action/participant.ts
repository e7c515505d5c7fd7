import type { ApprovalReservation } from "./approval.ts";
import type { CommitHook, DecisionCommitHook } from "./commit-hook.ts";
import type { ActionContext, ActionEnvelope } from "./envelope.ts";
import type { Evaluation } from "./evaluation.ts";
import type { Policy } from "./policy.ts";

/**
 * Reads the definition of an action's tool from its upstream, now, and returns its digest; undefined where the tool is gone.
 * Rejects where it cannot be read.
 */
export type DefinitionReader = () => Promise<string | undefined>;

/** An action that policy has judged and whose decision is about to be committed. */
export interface PendingDecision {
  readonly action: ActionEnvelope;
  readonly evaluation: Evaluation;
  /** Absent where the action is of no tool. */
  readonly readDefinition?: DefinitionReader | undefined;
  /** Set by the approval participant for an action that policy holds for review; null until then, and for all others. */
  review: ApprovalReservation | null;
  /** Set once the decision is durable. */
  isCommitted: boolean;
}

/** The part of one participant in the decision about one action. */
export interface Participation extends DecisionCommitHook {
  /** Members added to the action, frozen by the participant. */
  readonly context?: ActionContext;
  /** Reserves the review of an action that policy holds for one, before any verdict is applied. Rejections refuse the action. */
  reserveReview?(pending: PendingDecision): Promise<void>;
  /** Takes the verdict into account before the decision is committed. What it throws refuses the action. */
  applyVerdict?(pending: PendingDecision): void | Promise<void>;
  /** Called exactly once, whatever happened. Must not throw. */
  finish?(): void;
  /** Called once for a review that was reserved, after every `finish`; `isCommitted`: the decision is durable. Must not throw. */
  settleReview?(review: ApprovalReservation, isCommitted: boolean): void;
}

/**
 * A feature that takes part in every decision: it adds what policy must know, vetoes or writes in the commit, and is told
 * how it ended. The road calls participants in the order of its list and finishes them in reverse order.
 */
export interface Participant {
  readonly name: "approval" | "kill" | "session" | "ticket" | "manifest";
  /** A policy of its own, evaluated before packs and plugins. */
  readonly policy?: Policy;
  /** Returns the context of an action that is evaluated only (tool visibility, diagnostics). Changes nothing. */
  describe?(action: ActionEnvelope): ActionContext;
  /** The part of a participant that remembers nothing of an action; others `begin` one for each. */
  readonly participation?: Participation;
  /** Joins the decision of one action. Throws where nothing may be decided about it. */
  begin?(action: ActionEnvelope): Participation;
  /** Makes the taints of an evaluation durable. Rejects where they cannot be; then nothing may be sent or answered. */
  recordTaints?(action: ActionEnvelope, evaluation: Evaluation): Promise<void>;
  /** Counts the verdict about an answer and returns what commits with the outcome record, if anything. */
  applyOutputVerdict?(action: ActionEnvelope, evaluation: Evaluation): CommitHook | undefined;
}
