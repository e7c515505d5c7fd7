import { capabilities } from "../action/envelope.ts";
import type { JsonObject } from "../action/json.ts";
import { type AdminHandlers, type Operations, smallBody } from "../operation/operation.ts";
import { paging, ticketId } from "../operation/request.ts";
import {
  answers,
  anyText,
  closed,
  count,
  list,
  nullable,
  object,
  oneOf,
  page,
  ref,
  text,
  texts,
  time,
  words,
} from "../operation/shape.ts";
import { maxUses, scopeBounds } from "./claims.ts";
import { orderOf } from "./ticket-issuer.ts";
import type { Tickets } from "./tickets.ts";

type TicketRouteId = "admin.tickets" | "admin.ticket_issue" | "admin.ticket_keys" | "admin.ticket_revoke";

/** What the answers about tickets are made of. */
export const ticketSchemas: Readonly<Record<string, JsonObject>> = {
  Ticket: object({
    id: anyText,
    state: oneOf(["live", "used_up", "expired", "revoked"]),
    principal: anyText,
    tools: texts,
    targets: texts,
    capabilities: texts,
    uses: count,
    max_uses: count,
    session: nullable(anyText),
    issued_by: anyText,
    issued_at: time,
    expires_at: time,
    revoked: nullable(object({ by: anyText, reason: anyText, at: anyText })),
  }),
};

const { items, characters } = scopeBounds;
const patterns = list(text(1, characters, `a name or glob of 1 to ${characters} characters`), {
  minItems: 1,
  maxItems: items,
  description: `a list of 1 to ${items} names or globs`,
});

const order = closed(
  {
    principal: text(1, 256, "the id of a principal of your tenant"),
    tools: patterns,
    targets: patterns,
    capabilities: list(oneOf(capabilities), {
      minItems: 1,
      maxItems: items,
      description: `a list of ${capabilities.join(", ")}`,
    }),
    max_uses: {
      type: "integer",
      minimum: 1,
      maximum: maxUses,
      default: 1,
      description: `a whole number from 1 to ${maxUses}`,
    },
    ttl_seconds: {
      type: "integer",
      minimum: 1,
      maximum: 604_800,
      description:
        "a whole number from 1 to `tickets.max_ttl_seconds`; `tickets.default_ttl_seconds` where it is left out",
    },
  },
  ["max_uses", "ttl_seconds"],
);

/** Capability tickets. */
export const ticketOperations: Operations<TicketRouteId> = {
  "admin.tickets": {
    name: "listTickets",
    subject: "tickets",
    summary: "The tenant's tickets, the oldest first; never their tokens",
    query: paging,
    answer: answers("A page of tickets.", page(ref("Ticket"))),
    refusals: [],
  },
  "admin.ticket_issue": {
    name: "issueTicket",
    subject: "tickets",
    summary: "Issues a ticket; its token is told this once",
    body: {
      schema: order,
      example: {
        principal: `principal-v1-${"0".repeat(64)}`,
        tools: ["deploy_*"],
        targets: ["staging"],
        capabilities: ["deploy"],
        max_uses: 1,
        ttl_seconds: 300,
      },
      required: true,
      limits: { bytes: 65_536, json: { depth: 4, nodes: 128, stringLength: 1_024, reader: "exact" } },
    },
    answer: answers("The token, and the ticket as it is listed.", object({ token: anyText, ticket: ref("Ticket") })),
    refusals: ["NOT_FOUND", "TICKET_SELF_ISSUE", "TICKET_LIMIT", "EVIDENCE_UNAVAILABLE"],
  },
  "admin.ticket_keys": {
    name: "listTicketKeys",
    subject: "tickets",
    summary: "The public keys that sign the tenant's tickets, the oldest first",
    answer: answers(
      "The keys.",
      object({
        items: list(object({ key_id: anyText, public_key: anyText, created_at: time })),
        next: { type: "null" },
      }),
    ),
    refusals: [],
  },
  "admin.ticket_revoke": {
    name: "revokeTicket",
    subject: "tickets",
    summary: "Takes a ticket's permission away, at once",
    params: { id: ticketId },
    body: {
      schema: closed({ reason: words(1_024, "1 to 1024 characters: why it permits nothing any more") }),
      example: { reason: "the change was called off" },
      required: true,
      limits: smallBody,
    },
    answer: answers("The ticket.", object({ ticket: ref("Ticket") })),
    refusals: ["TICKET_STATE", "EVIDENCE_UNAVAILABLE"],
  },
};

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
