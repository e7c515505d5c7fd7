import type { IncomingMessage } from "node:http";
import { type PresentedTicket, ticketMetaKey } from "../action/capability-ticket.ts";
import { GatewayError } from "../action/error.ts";
import type { Json } from "../action/json.ts";
import type { Principal } from "../action/principal.ts";
import { singleHeader } from "../identity/key-ring.ts";

export interface TicketReader {
  present(token: string, principal: Pick<Principal, "id" | "tenant">): PresentedTicket;
}

/** Returns the token in the header of a request; undefined where there is none. */
export function ticketHeader({ rawHeaders }: Pick<IncomingMessage, "rawHeaders">): string | undefined {
  return singleHeader(rawHeaders, "x-gateway-ticket");
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
