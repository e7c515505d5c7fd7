import type { CommitHook, DecisionCommitHook } from "../action/commit-hook.ts";
import type { Evaluation } from "../action/decision.ts";
import type { ActionEnvelope } from "../action/envelope.ts";
import type { Visit } from "./authorize.ts";

/** What an action does to its session while it is decided. */
interface SessionVisit extends Omit<Visit, "use"> {
  /** Call once, whatever came of it. */
  leave(): void;
}

/** What it does to the ticket in its hand. */
interface TicketVisit extends DecisionCommitHook {
  /** The action with how its ticket stands. */
  readonly action: ActionEnvelope;
  /** Takes note of whether policy needed the ticket. */
  count(evaluation: Evaluation): void;
  leave(): void;
}

/** What sessions did so far, and what that means for what they attempt. */
export interface SessionWatch {
  /** The action with what its session did before it. */
  view(action: ActionEnvelope): ActionEnvelope;
  /** The same for an action that is about to be decided; `leave` ends the stay. */
  enter(action: ActionEnvelope): SessionVisit;
  /** Makes what an action brings in known of its session. What rejects is not known, and may not be seen by anyone. */
  learn(action: ActionEnvelope, evaluation: Evaluation): Promise<void>;
  /** Counts what policy said of its answer, before that is recorded, which may stop the session. */
  weigh(action: ActionEnvelope, evaluation: Evaluation): CommitHook;
}

/** What tickets permit now. */
export interface TicketDesk {
  /** The action with how its ticket stands. */
  view(action: ActionEnvelope): ActionEnvelope;
  /** The same for an action that is about to be decided; `leave` ends the stay. */
  enter(action: ActionEnvelope): TicketVisit;
}

/** One action before all that its decision depends on, and changes. */
export class JoinedVisit implements Visit {
  readonly action: ActionEnvelope;
  readonly use: Visit["use"];
  readonly #session: SessionVisit;
  readonly #ticket: TicketVisit;

  private constructor(session: SessionVisit, ticket: TicketVisit) {
    this.#session = session;
    this.#ticket = ticket;
    this.action = ticket.action;
    this.use = (dispatched) => ticket.use(dispatched);
  }

  /** Throws what the two throw; then neither is entered. */
  static enter(action: ActionEnvelope, sessions: SessionWatch, tickets: TicketDesk): JoinedVisit {
    const session = sessions.enter(action);
    try {
      return new JoinedVisit(session, tickets.enter(session.action));
    } catch (cause) {
      session.leave();
      throw cause;
    }
  }

  count(...said: Parameters<Visit["count"]>): void {
    this.#ticket.count(said[0]);
    this.#session.count(...said);
  }

  check(): void {
    this.#session.check();
    this.#ticket.check();
  }

  operations(dispatched: boolean): ReturnType<Visit["operations"]> {
    return [...this.#session.operations(dispatched), ...this.#ticket.operations(dispatched)];
  }

  leave(): void {
    this.#ticket.leave();
    this.#session.leave();
  }
}
