import type { TicketUse } from "./capability-ticket.ts";

/** What a decision passes, and takes with it, in the turn in which it gets its place in the chain. */
export interface DecisionCompany {
  /**
   * Throws where the action may not be let through any more; then nothing is recorded. Not asked of what is blocked.
   */
  check(): void;
  /** The use of a ticket that the decision spends, which its record names. Asked after `check`, before `operations`. */
  use(dispatched: boolean): TicketUse | undefined;
  /** What becomes durable with the decision, or not at all. Called once, and only where the decision is recorded. */
  operations(dispatched: boolean): readonly Operation[];
}

/** What a record of the evidence takes with it. */
export interface RecordCompany {
  /** What becomes durable with it, or not at all. Called in the turn in which it gets its place in the chain. */
  operations(): readonly Operation[];
  /** Called once, when it is durable, or has failed. */
  end(): void;
}

/** Of a record that changes nothing else. */
export const noCompany: RecordCompany = { operations: () => [], end: () => undefined };

/** One step of an atomic batch on the store: all of its batch happen, or none. */
export type Operation =
  | { readonly type: "put"; readonly key: string; readonly value: string }
  | { readonly type: "del"; readonly key: string };
