import type { Context } from "koa";
import { asciiJson } from "../kernel/ascii-json.ts";
import { orderOf } from "../ticket/order.ts";
import type { Tickets } from "../ticket/tickets.ts";
import type { AdminHandlers } from "./api/handler.ts";

export interface TicketParts {
  readonly tickets: Tickets;
}

type TicketRouteId = "admin.tickets" | "admin.ticket_issue" | "admin.ticket_keys" | "admin.ticket_revoke";

/** Handlers of capability tickets. Every answer is the caller's tenant only; who issues is who holds the key. */
export function ticketHandlers({ tickets }: TicketParts): AdminHandlers<TicketRouteId> {
  const { office, keys } = tickets;
  return {
    "admin.tickets": async (ctx, { tenant }, { query }) => {
      answer(ctx, await office.list(tenant, query.limit, query.cursor));
    },
    "admin.ticket_issue": async (ctx, caller, { body }) => {
      ctx.state.subject = body.principal;
      answer(ctx, await office.issue(caller, orderOf(body, office.times)));
    },
    "admin.ticket_keys": (ctx, { tenant }) => {
      ctx.body = { items: keys.list(tenant), next: null };
    },
    "admin.ticket_revoke": async (ctx, { tenant, id: by }, { id, body }) => {
      answer(ctx, { ticket: await office.revoke(tenant, id, by, body.reason) });
    },
  };
}

/** Names and reasons are written by people: whoever looks at the answer with bare eyes must not be misled by them. */
function answer(ctx: Context, body: object): void {
  ctx.type = "application/json; charset=utf-8";
  ctx.body = asciiJson(body);
}
