import { forgetOldest } from "../action/recent-map.ts";
import { type ChainFault, chainFault } from "../evidence/record/reason.ts";
import type { ActionRecord, EventRecord } from "../evidence/record/record.ts";
import type { RecordCheck, RecordRule } from "../evidence/verify/record-rule.ts";

/** The last use of a ticket, and how many uses it has. */
interface TicketUses {
  readonly use: number;
  readonly of: number;
}

/** The uses of a revoked ticket: none is left. */
const revoked: TicketUses = { use: Number.POSITIVE_INFINITY, of: 0 };

/**
 * The uses of a capability ticket are counted from 1 without a gap and never exceed what the ticket has, only dispatched
 * actions use one, and a revoked ticket is not used. A use of a ticket that is no longer remembered is refused.
 */
export const ticketRule: RecordRule = { start: (maxRemembered) => new TicketCheck(maxRemembered) };

class TicketCheck implements RecordCheck {
  readonly #maxRemembered: number;
  readonly #uses = new Map<string, TicketUses>();

  constructor(maxRemembered: number) {
    this.#maxRemembered = maxRemembered;
  }

  readEvent({ kind, detail: { event, ticket } }: EventRecord): void {
    if (kind === "ticket" && event === "revoked" && typeof ticket === "string") this.#remember(ticket, revoked);
  }

  checkAction(record: ActionRecord, hasGap: boolean): ChainFault | undefined {
    if (this.#isSound(record, hasGap)) return undefined;
    return chainFault("ticket_misused", "expected the next use of a ticket that has one left");
  }

  #isSound({ ticket, effect }: ActionRecord, hasGap: boolean): boolean {
    if (ticket?.use === undefined) return true;
    const { id, standing, use, of = -1 } = ticket;
    if (id === undefined || standing !== "valid" || effect !== "dispatched") return false;
    const before = this.#uses.get(id) ?? { use: 0, of };
    this.#remember(id, { use, of });
    return before.use < use && use <= of && of === before.of && (hasGap || use === before.use + 1);
  }

  #remember(id: string, uses: TicketUses): void {
    this.#uses.delete(id);
    this.#uses.set(id, uses);
    forgetOldest(this.#uses, this.#maxRemembered);
  }
}
