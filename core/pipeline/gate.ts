import { AuthorizedAction, type DurableDecision } from "../kernel/authorized-action.ts";
import type { ActionEnvelope } from "../kernel/envelope.ts";
import type { Evaluation } from "../kernel/evaluation.ts";

/** Where decisions become durable before anything is dispatched. */
export interface DecisionLog {
  /** Resolves once the decision is on disk. Rejects with EVIDENCE_UNAVAILABLE; then nothing may be dispatched. */
  recordDecision(action: ActionEnvelope, evaluation: Evaluation): Promise<DurableDecision>;
}

/**
 * Turns an evaluation into permission, or into a refusal (null), and never before the decision is durable.
 * The only place that makes an AuthorizedAction.
 */
export async function passGate(
  log: DecisionLog,
  action: ActionEnvelope,
  evaluation: Evaluation,
): Promise<AuthorizedAction | null> {
  if (evaluation.phase !== "input") throw new TypeError(`passGate: expected phase input, got ${evaluation.phase}`);
  const durable = await log.recordDecision(action, evaluation);
  // COMMIT POINT: the decision is on disk; a crash from here on leaves a decision without outcome, which recovery finds.
  return evaluation.decision === "allow" ? AuthorizedAction.authorize(action, evaluation, durable) : null;
}
