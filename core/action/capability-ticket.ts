/** The result of checking a ticket. All but `valid` are reasons why it permits nothing. */
export const ticketStandings = [
  "valid",
  "forged",
  "unknown",
  "expired",
  "not_yet",
  "other_principal",
  "other_tenant",
  "out_of_scope",
  "revoked",
  "used_up",
  "replayed",
] as const;
export type TicketStanding = (typeof ticketStandings)[number];

/** The ticket presented with an action, without the token itself. */
export interface PresentedTicket {
  /** Null where the token cannot be trusted. */
  readonly id: string | null;
  readonly standing: TicketStanding;
}

/** The number of a use, the first is 1, and how many there may be. */
export interface TicketUse {
  readonly use: number;
  readonly of: number;
}

/** Counted ticket events. `refused`: a ticket was presented with an action and did not permit it. */
export const ticketEvents = ["issued", "used", "refused", "revoked", "expired"] as const;
export type TicketEvent = (typeof ticketEvents)[number];

/** Called with ticket events, several of a kind at once. */
export type TicketObserver = (event: TicketEvent, times: number) => void;

/** Returns whether a ticket permits the action it was presented with. */
export function isCovered(ticket: PresentedTicket | undefined): ticket is PresentedTicket & { readonly id: string } {
  return ticket?.standing === "valid" && ticket.id !== null;
}

/** Returns the reason why an action that needs a ticket is refused. */
export function ticketNeed(ticket: PresentedTicket | undefined): string {
  return `needs a capability ticket: ${ticket?.standing ?? "none was presented"}`;
}

/** The `_meta` member of a request that carries a ticket; the header that does is `X-Gateway-Ticket`. */
export const ticketMetaKey = "io.agent-governance-gateway/ticket";
