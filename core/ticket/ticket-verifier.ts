import {
  isCovered,
  type PresentedTicket,
  type TicketObserver,
  type TicketUse,
  ticketMetaKey,
} from "../action/capability-ticket.ts";
import type { BatchOperation } from "../action/commit-hook.ts";
import type { ActionContext, ActionEnvelope } from "../action/envelope.ts";
import { GatewayError } from "../action/error.ts";
import type { Clock } from "../action/id.ts";
import type { Json } from "../action/json.ts";
import type { Participant, Participation, PendingDecision } from "../action/participant.ts";
import type { Principal } from "../action/principal.ts";
import { standingOfClaims } from "./claims.ts";
import type { TicketKeys } from "./ticket-keys.ts";
import { standingOf, type TicketEntry, type TicketStore } from "./ticket-store.ts";

interface TicketVerifierOptions {
  readonly keys: Pick<TicketKeys, "read">;
  readonly tickets: TicketStore;
  /** Milliseconds since 1970; never goes back. */
  readonly clock: Clock;
  readonly onEvent: TicketObserver;
}

/** The participation of an action without a ticket: it spends nothing. */
const noTicket: Participation = Object.freeze({});

/** Verifies the tickets that come with actions, and spends their uses. */
export class TicketVerifier implements Participant {
  readonly name = "ticket";
  readonly #options: TicketVerifierOptions;

  constructor(options: TicketVerifierOptions) {
    this.#options = options;
  }

  /** Verifies a token for the principal that presents it. The token itself goes no further. */
  present(token: string, principal: Pick<Principal, "id" | "tenant">): PresentedTicket {
    const read = this.#options.keys.read(token);
    if (read === undefined) return { id: null, standing: "forged" };
    if (read.owner !== principal.tenant) return { id: null, standing: "other_tenant" };
    const { claims } = read;
    return { id: claims.jti, standing: standingOfClaims(claims, principal.id, this.#options.clock()) };
  }

  describe(action: ActionEnvelope): ActionContext {
    const { ticket } = action;
    if (!isCovered(ticket)) return {};
    const standing = this.standing(action, ticket.id);
    return standing === "valid" ? {} : { ticket: Object.freeze({ id: ticket.id, standing }) };
  }

  begin(attempted: ActionEnvelope): Participation {
    if (attempted.ticket === undefined) return noTicket;
    return new TicketParticipation(this, this.#options, attempted, this.describe(attempted));
  }

  /** Determines whether a ticket of the tenant permits an action now, or why not. */
  standing(action: ActionEnvelope, id: string): PresentedTicket["standing"] {
    const { tickets, clock } = this.#options;
    return standingOf(tickets.read(action.tenant, id), tickets.isRevoked(action.tenant, id), action, clock());
  }
}

/** One action while it is decided, with the ticket that came with it. */
class TicketParticipation implements Participation {
  readonly context: ActionContext;
  readonly #verifier: TicketVerifier;
  readonly #options: TicketVerifierOptions;
  readonly #attempted: ActionEnvelope;
  readonly #ticket: PresentedTicket | undefined;
  /** The ticket that lifted a rule for this action: dispatching it spends a use. */
  #needed: string | undefined;
  #isSpent = false;

  constructor(
    verifier: TicketVerifier,
    options: TicketVerifierOptions,
    attempted: ActionEnvelope,
    context: ActionContext,
  ) {
    this.#verifier = verifier;
    this.#options = options;
    this.#attempted = attempted;
    this.context = context;
    this.#ticket = context.ticket ?? attempted.ticket;
  }

  /** Remembers the ticket where it lifted an enforced rule; only then is a use spent. */
  applyVerdict({ evaluation: { verdicts } }: PendingDecision): void {
    this.#needed = undefined;
    if (!isCovered(this.#ticket)) return;
    const isNeeded = verdicts.some(({ findings }) => findings.some((finding) => finding.ticket !== undefined));
    if (isNeeded) this.#needed = this.#ticket.id;
  }

  /**
   * Returns the use that the decision spends; undefined where it spends none. Throws TICKET_STATE where the ticket that
   * lifted a rule has become invalid since the evaluation.
   */
  check(action: ActionEnvelope, dispatched: boolean): TicketUse | undefined {
    if (this.#needed === undefined) return undefined;
    const standing = this.#verifier.standing(action, this.#needed);
    if (standing !== "valid") throw new GatewayError("TICKET_STATE", `\`${standing}\``, { data: { standing } });
    const entry = dispatched ? this.#entry() : undefined;
    return entry && { use: entry.uses + 1, of: entry.claims.max_uses };
  }

  /** Spends that use and returns what is written with the decision. */
  operations(dispatched: boolean): readonly BatchOperation[] {
    const entry = dispatched ? this.#entry() : undefined;
    if (entry === undefined) return [];
    const { tenant, session } = this.#attempted;
    this.#isSpent = true;
    return [
      this.#options.tickets.change(tenant, entry.claims.jti, { ...entry, uses: entry.uses + 1, session: session.id }),
    ];
  }

  finish(): void {
    const { tickets, onEvent } = this.#options;
    const { tenant } = this.#attempted;
    const ticket = this.#ticket;
    if (ticket !== undefined && !isCovered(ticket)) onEvent("refused", 1);
    if (!this.#isSpent || this.#needed === undefined) return;
    tickets.settle(tenant, this.#needed);
    onEvent("used", 1);
  }

  #entry(): TicketEntry | undefined {
    return this.#needed === undefined ? undefined : this.#options.tickets.read(this.#attempted.tenant, this.#needed);
  }
}

/** The header that carries a ticket. */
export const ticketHeader = "x-gateway-ticket";

export interface TicketReader {
  present(token: string, principal: Pick<Principal, "id" | "tenant">): PresentedTicket;
}

/**
 * Verifies the ticket of a request, in a header or in its `_meta`. A malformed token counts as forged. Throws
 * INVALID_HEADER for two of them. The token itself is not kept.
 */
export function presentTicket(
  tickets: TicketReader,
  principal: Principal,
  header: string | undefined,
  meta: Json | undefined,
): PresentedTicket | undefined {
  if (header !== undefined && meta !== undefined) {
    throw new GatewayError("INVALID_HEADER", `expected one ticket, in \`x-gateway-ticket\` or in \`${ticketMetaKey}\``);
  }
  const token = header ?? meta;
  if (token === undefined) return undefined;
  return tickets.present(typeof token === "string" ? token : "", principal);
}
