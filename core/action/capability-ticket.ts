/** What came of looking at a ticket. All but `valid` are reasons why it permits nothing. */
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

/** The ticket that came with an action, as policy and people may see it: the token itself is told to nobody. */
export interface PresentedTicket {
  /** Null where nothing that the token says of itself can be believed. */
  readonly id: string | null;
  readonly standing: TicketStanding;
}

/** The number of a use, the first is 1, and how many there may be. */
export interface TicketUse {
  readonly use: number;
  readonly of: number;
}

/** What is counted of tickets. `refused`: one came with an action and did not permit it. */
export const ticketEvents = ["issued", "used", "refused", "revoked", "expired"] as const;
export type TicketEvent = (typeof ticketEvents)[number];

/** Told of what becomes of tickets, so many at once. */
export type TicketObserver = (event: TicketEvent, times: number) => void;

/** Whether a ticket permits the action it came with. */
export function isCovered(ticket: PresentedTicket | undefined): ticket is PresentedTicket & { readonly id: string } {
  return ticket?.standing === "valid" && ticket.id !== null;
}

/** Why an action that needs a ticket is not let through. */
export function ticketNeed(ticket: PresentedTicket | undefined): string {
  return `needs a capability ticket: ${ticket?.standing ?? "none was presented"}`;
}

/** The `_meta` member of a request that carries a ticket; the header that does is `X-Gateway-Ticket`. */
export const ticketMetaKey = "io.agent-governance-gateway/ticket";
