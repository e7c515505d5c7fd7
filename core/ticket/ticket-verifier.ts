import { isCovered, type PresentedTicket, type TicketObserver, type TicketUse } from "../action/capability-ticket.ts";
import type { BatchOperation } from "../action/commit-hook.ts";
import type { Evaluation } from "../action/decision.ts";
import type { ActionEnvelope } from "../action/envelope.ts";
import { GatewayError } from "../action/error.ts";
import type { Clock } from "../action/id.ts";
import { deepFreeze } from "../action/json.ts";
import type { Principal } from "../action/principal.ts";
import { standingOfClaims } from "./claims.ts";
import type { TicketKeys } from "./ticket-keys.ts";
import { standingOf, type TicketBook, type TicketEntry } from "./ticket-store.ts";

interface TicketDeskParts {
  readonly keys: Pick<TicketKeys, "read">;
  readonly book: TicketBook;
  /** Milliseconds since 1970; never goes back. */
  readonly clock: Clock;
  readonly onEvent: TicketObserver;
}

/** Where tickets are presented, and spent. */
export class TicketDesk {
  readonly #parts: TicketDeskParts;

  constructor(parts: TicketDeskParts) {
    this.#parts = parts;
  }

  /** What a token is to whoever presents it. The token goes no further; what became of the ticket, `enter` says. */
  present(token: string, principal: Pick<Principal, "id" | "tenant">): PresentedTicket {
    const read = this.#parts.keys.read(token);
    if (read === undefined) return { id: null, standing: "forged" };
    if (read.owner !== principal.tenant) return { id: null, standing: "other_tenant" };
    const { claims } = read;
    return { id: claims.jti, standing: standingOfClaims(claims, principal.id, this.#parts.clock()) };
  }

  /** The action with how its ticket stands now. */
  view(action: ActionEnvelope): ActionEnvelope {
    const { ticket } = action;
    if (!isCovered(ticket)) return action;
    const standing = this.standing(action, ticket.id);
    return standing === "valid" ? action : deepFreeze({ ...action, ticket: { id: ticket.id, standing } });
  }

  /** The same for an action that is about to be decided. Call `leave` when it is, whatever came of it. */
  enter(action: ActionEnvelope): TicketVisit {
    return new TicketVisit(this, this.#parts, this.view(action));
  }

  /** How a ticket of the tenant stands towards an action now. */
  standing(action: ActionEnvelope, id: string): PresentedTicket["standing"] {
    const { book, clock } = this.#parts;
    return standingOf(book.read(action.tenant, id), book.isRevoked(action.tenant, id), action, clock());
  }
}

/** One action while it is decided, with the ticket in its hand. */
class TicketVisit {
  readonly action: ActionEnvelope;
  readonly #desk: TicketDesk;
  readonly #parts: TicketDeskParts;
  /** The ticket that lifted a rule for this action: dispatching it spends a use. */
  #needed: string | undefined;
  #isSpent = false;

  constructor(desk: TicketDesk, parts: TicketDeskParts, action: ActionEnvelope) {
    this.#desk = desk;
    this.#parts = parts;
    this.action = action;
  }

  /** Takes note of what policy said: a ticket that lifted no enforced rule is not spent. */
  count({ verdicts }: Evaluation): void {
    const { ticket } = this.action;
    const isNeeded = verdicts.some(({ findings }) => findings.some((finding) => finding.ticket !== undefined));
    this.#needed = isNeeded && isCovered(ticket) ? ticket.id : undefined;
  }

  /** Throws TICKET_STATE where a ticket that lifted a rule does not stand any more as it did when that was judged. */
  check(): void {
    if (this.#needed === undefined) return;
    const standing = this.#desk.standing(this.action, this.#needed);
    if (standing !== "valid") throw new GatewayError("TICKET_STATE", `\`${standing}\``, { data: { standing } });
  }

  /** The use that the decision spends, in the turn in which it gets its place; undefined where it spends none. */
  use(dispatched: boolean): TicketUse | undefined {
    const entry = dispatched ? this.#entry() : undefined;
    return entry && { use: entry.uses + 1, of: entry.claims.max_uses };
  }

  /** Spends that use. Returns what is written with the decision. */
  operations(dispatched: boolean): readonly BatchOperation[] {
    const entry = dispatched ? this.#entry() : undefined;
    if (entry === undefined) return [];
    const { tenant, session } = this.action;
    this.#isSpent = true;
    return [this.#parts.book.change(tenant, entry.claims.jti, { ...entry, uses: entry.uses + 1, session: session.id })];
  }

  leave(): void {
    const { book, onEvent } = this.#parts;
    const { tenant, ticket } = this.action;
    if (ticket !== undefined && !isCovered(ticket)) onEvent("refused", 1);
    if (!this.#isSpent || this.#needed === undefined) return;
    book.settle(tenant, this.#needed);
    onEvent("used", 1);
  }

  #entry(): TicketEntry | undefined {
    return this.#needed === undefined ? undefined : this.#parts.book.read(this.action.tenant, this.#needed);
  }
}
