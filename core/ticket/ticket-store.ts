import type { TicketStanding } from "../action/capability-ticket.ts";
import type { BatchOperation } from "../action/commit-hook.ts";
import type { ActionEnvelope } from "../action/envelope.ts";
import { GatewayError } from "../action/error.ts";
import { isJsonObject, parseKept } from "../action/json.ts";
import { lastPart, rangeOf, tenantPrefix } from "../store/key-range.ts";
import type { Store } from "../store/open.ts";
import { covers, readClaims, standingOfClaims, type TicketClaims } from "./claims.ts";

/** An entry whose writes are in progress. */
interface PendingEntry {
  entry: TicketEntry;
  writeCount: number;
}

/**
 * The current tickets: from the store, and with the changes that are being written. Writes go through the ledger.
 *
 * INVARIANT: a change is visible from the turn in which it is made until it is durable or has failed. So two actions never
 * spend one use, and a failed one does not count.
 */
export class TicketStore {
  readonly #store: Store;
  readonly #pending = new Map<string, PendingEntry>();
  /** Revocations by this process, durable or not. */
  readonly #revoked = new Set<string>();

  constructor(store: Store) {
    this.#store = store;
  }

  /** Throws EVIDENCE_UNAVAILABLE where the store cannot be read: the ticket permits nothing then. */
  read(tenant: string, id: string): TicketEntry | undefined {
    const key = ticketKey(tenant, id);
    const pending = this.#pending.get(key);
    if (pending !== undefined) return pending.entry;
    const text = this.#get(key);
    return text === undefined ? undefined : readTicketEntry(text);
  }

  isRevoked(tenant: string, id: string): boolean {
    const key = revocationKey(tenant, id);
    return this.#revoked.has(key) || this.#get(key) !== undefined;
  }

  /** Revokes a ticket, in force at once. The caller makes it durable. */
  revoke(tenant: string, id: string): void {
    this.#revoked.add(revocationKey(tenant, id));
  }

  /** Changes a ticket, in force at once. The caller calls `settle` when the operation is durable or has failed. */
  change(tenant: string, id: string, entry: TicketEntry): BatchOperation {
    const key = ticketKey(tenant, id);
    const pending = this.#pending.get(key) ?? { entry, writeCount: 0 };
    pending.entry = entry;
    pending.writeCount++;
    this.#pending.set(key, pending);
    return { type: "put", key, value: JSON.stringify(entry) };
  }

  /** Ends a write. After the last one the store has the current entry. */
  settle(tenant: string, id: string): void {
    const key = ticketKey(tenant, id);
    const pending = this.#pending.get(key);
    if (pending !== undefined && --pending.writeCount === 0) this.#pending.delete(key);
  }

  /** Forgets a ticket that was deleted from the store. */
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

/** The stored entry of a ticket until it has expired. The scope of a ticket is read from here, never from a token. */
export interface TicketEntry {
  readonly claims: TicketClaims;
  /** The principal who issued it. */
  readonly issued_by: string;
  readonly uses: number;
  /** The session that used it first, the only one that may use it; null before the first use. */
  readonly session: string | null;
}

/** The revocation of a ticket. */
export interface Revocation {
  readonly by: string;
  readonly reason: string;
  /** RFC 3339, milliseconds, UTC. */
  readonly at: string;
}

export function ticketKey(tenant: string, id: string): string {
  return `${tenantPrefix(tenant)}ticket/${id}`;
}

/** The range of the tickets of a tenant after the ticket `after`; all of them where that is empty. */
export function ticketRange(tenant: string, after = ""): { readonly gt: string; readonly lt: string } {
  return { gt: ticketKey(tenant, after), lt: rangeOf(ticketKey(tenant, "")).lt };
}

/** A key apart from the ticket, so that a concurrent write of a use cannot undo a revocation. */
export function revocationKey(tenant: string, id: string): string {
  return `${tenantPrefix(tenant)}ticket-revoked/${id}`;
}

export function ticketIn(key: string): string {
  return lastPart(key);
}

/** Parses an entry; undefined for a damaged one, whose ticket is unknown then. */
export function readTicketEntry(text: string): TicketEntry | undefined {
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

/** Determines whether a ticket permits an action at a time (milliseconds since 1970), or why not. */
export function standingOf(
  entry: TicketEntry | undefined,
  isRevoked: boolean,
  action: ActionEnvelope,
  now: number,
): TicketStanding {
  if (entry === undefined || entry.claims.tenant !== action.tenant) return "unknown";
  const { claims, session, uses } = entry;
  const standing = standingOfClaims(claims, action.principal.id, now);
  // Checked first: the state of a ticket is disclosed to its principal alone.
  if (standing === "other_principal") return standing;
  if (isRevoked) return "revoked";
  if (standing !== "valid") return standing;
  if (!covers(claims, action)) return "out_of_scope";
  if (session !== null && session !== action.session.id) return "replayed";
  return uses >= claims.max_uses ? "used_up" : "valid";
}
