import type { TicketStanding } from "../kernel/capability-ticket.ts";
import type { ActionEnvelope } from "../kernel/envelope.ts";
import { isJsonObject } from "../kernel/json.ts";
import { parseKept } from "../kernel/kept-json.ts";
import { lastPart, rangeOf, tenantPrefix } from "../kernel/tenant-key.ts";
import { covers, readClaims, standingOfClaims, type TicketClaims } from "./claims.ts";

/** What the store keeps of a ticket until it has expired. What a ticket permits is read from here, never from a token. */
export interface TicketEntry {
  readonly claims: TicketClaims;
  /** The principal who issued it. */
  readonly issued_by: string;
  readonly uses: number;
  /** The session that used it first, and that alone may use it; null until then. */
  readonly session: string | null;
}

/** Why a ticket permits nothing any more. */
export interface Revocation {
  readonly by: string;
  readonly reason: string;
  /** RFC 3339, milliseconds, UTC. */
  readonly at: string;
}

export function ticketKey(tenant: string, id: string): string {
  return `${tenantPrefix(tenant)}ticket/${id}`;
}

/** The tenant's entries behind that of the ticket `after`; all of them where that is empty. */
export function ticketRange(tenant: string, after = ""): { readonly gt: string; readonly lt: string } {
  return { gt: ticketKey(tenant, after), lt: rangeOf(ticketKey(tenant, "")).lt };
}

/** Apart from the ticket, so that no use that is written at the same time can undo it. */
export function revocationKey(tenant: string, id: string): string {
  return `${tenantPrefix(tenant)}ticket-revoked/${id}`;
}

export function ticketIn(key: string): string {
  return lastPart(key);
}

/** Undefined for a text that no gateway wrote: such a ticket is unknown. */
export function readEntry(text: string): TicketEntry | undefined {
  const value = parseKept(text);
  if (!isJsonObject(value)) return undefined;
  const { claims, issued_by: by, uses, session } = value;
  const isSound =
    readClaims(claims ?? null) !== undefined &&
    typeof by === "string" &&
    Number.isSafeInteger(uses) &&
    (session === null || typeof session === "string");
  return isSound ? (value as unknown as TicketEntry) : undefined;
}

export function readRevocation(text: string): Revocation {
  const value = parseKept(text);
  const { by, reason, at } = isJsonObject(value) ? value : {};
  return { by: String(by), reason: String(reason), at: String(at) };
}

/** How a ticket stands towards an action, at a time (milliseconds since 1970). */
export function standingOf(
  entry: TicketEntry | undefined,
  isRevoked: boolean,
  action: ActionEnvelope,
  now: number,
): TicketStanding {
  if (entry === undefined || entry.claims.tenant !== action.tenant) return "unknown";
  const { claims, session, uses } = entry;
  const standing = standingOfClaims(claims, action.principal.id, now);
  // Whose it is comes first: nobody else learns what became of it.
  if (standing === "other_principal") return standing;
  if (isRevoked) return "revoked";
  if (standing !== "valid") return standing;
  if (!covers(claims, action)) return "out_of_scope";
  if (session !== null && session !== action.session.id) return "replayed";
  return uses >= claims.max_uses ? "used_up" : "valid";
}
