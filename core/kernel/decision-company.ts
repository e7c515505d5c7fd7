import type { TicketUse } from "./capability-ticket.ts";
import type { Operation } from "./operation.ts";

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
