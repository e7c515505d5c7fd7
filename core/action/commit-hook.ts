import type { TicketUse } from "./capability-ticket.ts";
import type { ActionEnvelope } from "./envelope.ts";

/** Checks and writes committed atomically with a decision record. */
export interface DecisionCommitHook {
  /**
   * Throws where the action may no longer run, in the turn of the commit; then nothing is recorded. Returns the ticket use
   * that the decision spends, named in its record. Not called for a blocked action.
   */
  check?(action: ActionEnvelope, isDispatched: boolean): TicketUse | undefined;
  /**
   * Returns the writes of the decision's batch. Called once, after every `check` passed, in the turn in which the decision
   * gets its sequence number.
   */
  operations?(isDispatched: boolean): readonly BatchOperation[];
}

/** Writes committed atomically with an evidence record. */
export interface CommitHook {
  /** Returns the writes of the record's batch. Called in the turn in which the record gets its sequence number. */
  operations(): readonly BatchOperation[];
  /** Called once, when the record is durable or has failed. */
  end(): void;
}

/** One write of an atomic batch: either every operation of a batch is applied, or none. */
export type BatchOperation =
  | { readonly type: "put"; readonly key: string; readonly value: string }
  | { readonly type: "del"; readonly key: string };
