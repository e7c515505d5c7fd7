import type { AbstractLevel } from "abstract-level";
import type { TicketStanding } from "../action/capability-ticket.ts";
import type { BatchOperation } from "../action/commit-hook.ts";
import type { ActionEnvelope } from "../action/envelope.ts";
import { GatewayError } from "../action/error.ts";
import { isJsonObject, parseKept } from "../action/json.ts";
import { lastPart, rangeOf, tenantPrefix } from "../store/key-range.ts";
import { covers, readClaims, standingOfClaims, type TicketClaims } from "./claims.ts";

/** The database as this folder reads it; it writes through the evidence alone. */
export type TicketStore = AbstractLevel<string | Buffer | Uint8Array, string, string>;

interface Written {
  entry: TicketEntry;
  /** Writes of it that are under way. */
  count: number;
}

/**
 * Tickets as they are now: as the store has them, and where writes are under way, as those leave them.
 *
 * INVARIANT: a change is seen from the turn in which it is made until it is durable, or failed. So two actions never
 * spend one use, and one that failed does not count.
 */
export class TicketBook {
  readonly #store: TicketStore;
  readonly #written = new Map<string, Written>();
  /** Revocations of this process, whether or not they are durable. */
  readonly #revoked = new Set<string>();

  constructor(store: TicketStore) {
    this.#store = store;
  }

  /** Throws EVIDENCE_UNAVAILABLE where the store cannot be read: then nobody knows what the ticket permits. */
  read(tenant: string, id: string): TicketEntry | undefined {
    const key = ticketKey(tenant, id);
    const written = this.#written.get(key);
    if (written !== undefined) return written.entry;
    const text = this.#get(key);
    return text === undefined ? undefined : readEntry(text);
  }

  isRevoked(tenant: string, id: string): boolean {
    const key = revocationKey(tenant, id);
    return this.#revoked.has(key) || this.#get(key) !== undefined;
  }

  /** Revokes it, in force from now on. */
  revoke(tenant: string, id: string): void {
    this.#revoked.add(revocationKey(tenant, id));
  }

  /** Changes a ticket, in force from now on; call `settle` when the operation is durable, or has failed. */
  change(tenant: string, id: string, entry: TicketEntry): BatchOperation {
    const key = ticketKey(tenant, id);
    const written = this.#written.get(key) ?? { entry, count: 0 };
    written.entry = entry;
    written.count++;
    this.#written.set(key, written);
    return { type: "put", key, value: JSON.stringify(entry) };
  }

  /** A write is over: once the last one is, the store alone knows. */
  settle(tenant: string, id: string): void {
    const key = ticketKey(tenant, id);
    const written = this.#written.get(key);
    if (written !== undefined && --written.count === 0) this.#written.delete(key);
  }

  /** Forgets a ticket that is in the store no more. */
  forget(tenant: string, id: string): void {
    this.#revoked.delete(revocationKey(tenant, id));
  }

  #get(key: string): string | undefined {
    try {
      return this.#store.getSync(key);
    } catch (cause) {
      throw new GatewayError("EVIDENCE_UNAVAILABLE", "tickets cannot be read", { cause });
    }
  }
}

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
