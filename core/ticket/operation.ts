import type { TObject } from "@sinclair/typebox";
import { capabilities } from "../action/capability.ts";
import { Type } from "../config/type.ts";
import { type AdminHandlers, type AdminOperations, smallBody } from "../operation/operation.ts";
import {
  anyText,
  boundedText,
  closed,
  enumOf,
  jsonResponse,
  nonBlankText,
  nullable,
  page,
  paging,
  ref,
  ticketParameter,
  time,
  whole,
  wholeNumber,
} from "../operation/shape.ts";
import { maxUses, scopeBounds } from "./claims.ts";
import { orderOf } from "./ticket-issuer.ts";
import type { Tickets } from "./tickets.ts";

const { items, characters } = scopeBounds;
const patterns = Type.Array(boundedText(1, characters, `a name or glob of 1 to ${characters} characters`), {
  minItems: 1,
  maxItems: items,
  description: `a list of 1 to ${items} names or globs`,
});

const order = closed({
  principal: boundedText(1, 256, "the id of a principal of your tenant"),
  tools: patterns,
  targets: patterns,
  capabilities: Type.Array(enumOf(capabilities), {
    minItems: 1,
    maxItems: items,
    description: `a list of ${capabilities.join(", ")}`,
  }),
  max_uses: Type.Optional(
    Type.Integer({
      minimum: 1,
      maximum: maxUses,
      default: 1,
      description: `a whole number from 1 to ${maxUses}`,
    }),
  ),
  ttl_seconds: Type.Optional(
    Type.Integer({
      minimum: 1,
      maximum: 604_800,
      description:
        "a whole number from 1 to `tickets.max_ttl_seconds`; `tickets.default_ttl_seconds` where it is absent",
    }),
  ),
});

/** Capability tickets. */
export const ticketOperations = {
  listTickets: {
    id: "admin.tickets",
    method: "GET",
    path: "/admin/v1/tickets",
    access: "ticket.read",
    tag: "tickets",
    summary: "List the tenant's tickets, oldest first, without their tokens",
    query: closed(paging),
    response: jsonResponse("A page of tickets.", page(ref("Ticket"))),
    errors: [],
  },
  issueTicket: {
    id: "admin.ticket_issue",
    method: "POST",
    path: "/admin/v1/tickets",
    access: "ticket.issue",
    tag: "tickets",
    summary: "Issue a ticket; the token is returned this once",
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
    response: jsonResponse("The token and the ticket.", Type.Object({ token: anyText, ticket: ref("Ticket") })),
    errors: ["NOT_FOUND", "TICKET_SELF_ISSUE", "TICKET_LIMIT", "EVIDENCE_UNAVAILABLE"],
    subjectMember: "principal",
  },
  listTicketKeys: {
    id: "admin.ticket_keys",
    method: "GET",
    path: "/admin/v1/ticket-keys",
    access: "ticket.read",
    tag: "tickets",
    summary: "List the public keys that sign the tenant's tickets, oldest first",
    response: jsonResponse("The keys.", whole(Type.Object({ key_id: anyText, public_key: anyText, created_at: time }))),
    errors: [],
  },
  revokeTicket: {
    id: "admin.ticket_revoke",
    method: "DELETE",
    path: "/admin/v1/tickets/:id",
    access: "ticket.issue",
    tag: "tickets",
    summary: "Revoke a ticket, effective at once",
    params: { id: ticketParameter },
    body: {
      schema: closed({ reason: nonBlankText(1_024, "1 to 1024 characters: why it is revoked") }),
      example: { reason: "the change was called off" },
      required: true,
      limits: smallBody,
    },
    response: jsonResponse("The ticket.", Type.Object({ ticket: ref("Ticket") })),
    errors: ["TICKET_STATE", "EVIDENCE_UNAVAILABLE"],
  },
} as const satisfies AdminOperations;

/** Components of the document. */
export const ticketSchemas: Readonly<Record<string, TObject>> = {
  Ticket: Type.Object({
    id: anyText,
    state: enumOf(["live", "used_up", "expired", "revoked"]),
    principal: anyText,
    tools: Type.Array(anyText),
    targets: Type.Array(anyText),
    capabilities: Type.Array(anyText),
    uses: wholeNumber,
    max_uses: wholeNumber,
    session: nullable(anyText),
    issued_by: anyText,
    issued_at: time,
    expires_at: time,
    revoked: nullable(Type.Object({ by: anyText, reason: anyText, at: anyText })),
  }),
};

/** Handlers of capability tickets. Responses are of the caller's tenant only; the issuer is the holder of the key. */
export function ticketHandlers({ tickets }: { readonly tickets: Tickets }): AdminHandlers<typeof ticketOperations> {
  const { issuer, keys } = tickets;
  return {
    listTickets: ({ tenant }, { query }) => issuer.list(tenant, query.limit, query.cursor),
    issueTicket: (caller, { body: { max_uses = 1, ...asked } }) =>
      issuer.issue(caller, orderOf({ max_uses, ...asked }, issuer.times)),
    listTicketKeys: ({ tenant }) => ({ items: keys.list(tenant), next: null }),
    revokeTicket: async ({ tenant, id: by }, { id, body }) => ({
      ticket: await issuer.revoke(tenant, id, by, body.reason),
    }),
  };
}
