import type { Context } from "koa";
import { asciiJson } from "../kernel/ascii-json.ts";
import { GatewayError } from "../kernel/error.ts";
import type { Principal } from "../kernel/principal.ts";
import { readOrder } from "../ticket/order.ts";
import type { Tickets } from "../ticket/tickets.ts";
import type { Handlers } from "./app.ts";
import { type BodyLimits, readJsonBody } from "./body.ts";
import { readPage } from "./page.ts";
import { readTexts } from "./text-body.ts";

export interface TicketParts {
  readonly tickets: Tickets;
}

type TicketRouteId = "admin.tickets" | "admin.ticket_issue" | "admin.ticket_keys" | "admin.ticket_revoke";

const limits: BodyLimits = { bytes: 65_536, json: { depth: 4, nodes: 128, stringLength: 1_024, reader: "exact" } };
const reasonBounds = { least: 1, most: 1_024 };

/** Handlers of capability tickets. Every answer is the caller's tenant only; who issues is who holds the key. */
export function ticketHandlers({ tickets }: TicketParts): Pick<Handlers, TicketRouteId> {
  const { office, keys } = tickets;
  return {
    "admin.tickets": async (ctx, { tenant }) => {
      const { limit, cursor } = readPage(ctx);
      answer(ctx, await office.list(tenant, limit, cursor));
    },
    "admin.ticket_issue": async (ctx, caller) => {
      const order = readOrder(await readJsonBody(ctx.req, limits), office.times);
      ctx.state.subject = order.principal;
      answer(ctx, await office.issue(caller, order));
    },
    "admin.ticket_keys": (ctx, { tenant }) => {
      ctx.body = { items: keys.list(tenant), next: null };
    },
    "admin.ticket_revoke": (ctx, caller) => revoke(tickets, ctx, caller),
  };
}

async function revoke({ office }: Tickets, ctx: Context, { tenant, id: by }: Principal): Promise<void> {
  const { reason } = await readTexts(ctx.req, { reason: reasonBounds });
  if (reason === undefined)
    throw new GatewayError("INVALID_PARAMS", "expected `reason`: why it permits nothing any more");
  answer(ctx, { ticket: await office.revoke(tenant, ctx.params.id as string, by, reason) });
}

/** Names and reasons are written by people: whoever looks at the answer with bare eyes must not be misled by them. */
function answer(ctx: Context, body: object): void {
  ctx.type = "application/json; charset=utf-8";
  ctx.body = asciiJson(body);
}
