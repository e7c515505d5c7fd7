import { forgetOldest } from "../action/recent-map.ts";
import type { ActionRecord, EventRecord } from "../evidence/record/record.ts";

/** The last use of a ticket, and how many it has. */
interface Spent {
  readonly use: number;
  readonly of: number;
}

/** What a ticket that was revoked has left. */
const nothing: Spent = { use: Number.POSITIVE_INFINITY, of: 0 };

/**
 * What a chain may say of capability tickets: each use has the number after the one before, the first is 1, none is
 * beyond what the ticket has, only dispatched actions spend one, and none is spent of a ticket that was revoked.
 * Remembers `most` tickets, the oldest forgotten first: a later use of a forgotten one is refused.
 */
export class TicketRules {
  readonly #most: number;
  readonly #spent = new Map<string, Spent>();

  constructor(most: number) {
    this.#most = most;
  }

  /** Takes the next `ticket` event of the chain. */
  note({ detail: { event, ticket } }: EventRecord): void {
    if (event === "revoked" && typeof ticket === "string") this.#keep(ticket, nothing);
  }

  /** Takes the next record of an action; `hasGap`: records before it may be missing. Says whether it is sound. */
  check({ ticket, effect }: ActionRecord, hasGap: boolean): boolean {
    if (ticket?.use === undefined) return true;
    const { id, standing, use, of = -1 } = ticket;
    if (id === undefined || standing !== "valid" || effect !== "dispatched") return false;
    const before = this.#spent.get(id) ?? { use: 0, of };
    this.#keep(id, { use, of });
    return before.use < use && use <= of && of === before.of && (hasGap || use === before.use + 1);
  }

  #keep(id: string, spent: Spent): void {
    this.#spent.delete(id);
    this.#spent.set(id, spent);
    forgetOldest(this.#spent, this.#most);
  }
}
