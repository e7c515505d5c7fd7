import { orderOf } from "../ticket/order.ts";
import type { Tickets } from "../ticket/tickets.ts";
import type { AdminHandlers } from "./api/handler.ts";
import type { TicketRouteId } from "./api/ticket.ts";

export interface TicketParts {
  readonly tickets: Tickets;
}

/** Handlers of capability tickets. Every answer is the caller's tenant only; who issues is who holds the key. */
export function ticketHandlers({ tickets }: TicketParts): AdminHandlers<TicketRouteId> {
  const { office, keys } = tickets;
  return {
    "admin.tickets": async (ctx, { tenant }, { query }) => {
      ctx.body = await office.list(tenant, query.limit, query.cursor);
    },
    "admin.ticket_issue": async (ctx, caller, { body }) => {
      ctx.state.subject = body.principal;
      ctx.body = await office.issue(caller, orderOf(body, office.times));
    },
    "admin.ticket_keys": (ctx, { tenant }) => {
      ctx.body = { items: keys.list(tenant), next: null };
    },
    "admin.ticket_revoke": async (ctx, { tenant, id: by }, { id, body }) => {
      ctx.body = { ticket: await office.revoke(tenant, id, by, body.reason) };
    },
  };
}
