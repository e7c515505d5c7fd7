import type { ActionEnvelope, Outcome, Protocol } from "./envelope.ts";
import type { Evaluation } from "./evaluation.ts";
import type { TraceContext } from "./trace.ts";

/**
 * Receives what happened on the road and changes nothing: metrics, live feed, recent decisions, shadow results. Methods
 * are called synchronously and must not throw.
 */
export interface Subscriber {
  /** Called after each evaluation, those that leave no record included. */
  evaluated?(action: ActionEnvelope, evaluation: Evaluation, trace: TraceContext | undefined): void;
  /**
   * Called once an evaluation is durable: the decision about an action, later that about its output. `action` is without
   * output in both cases. `isDispatched`: the action is about to be sent, or was.
   */
  recorded?(action: ActionEnvelope, evaluation: Evaluation, isDispatched: boolean): void;
  /** Called once an outcome is durable. */
  finished?(action: ActionEnvelope, outcome: Outcome): void;
  /** Called for each answer or notification in which policy replaced text. */
  redacted?(protocol: Protocol, redactionCount: number): void;
}
