import type { AbstractLevel } from "abstract-level";
import { GatewayError } from "../kernel/error.ts";
import type { Operation } from "../kernel/operation.ts";
import { readEntry, revocationKey, type TicketEntry, ticketKey } from "./ticket-entry.ts";

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
  change(tenant: string, id: string, entry: TicketEntry): Operation {
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
