import type { TicketObserver } from "../action/capability-ticket.ts";
import type { Clock, Random } from "../action/id.ts";
import { TicketOffice, type TicketRule } from "./ticket-issuer.ts";
import { type TicketKeyStore, TicketKeys, type TicketLog } from "./ticket-keys.ts";
import { TicketBook, type TicketStore } from "./ticket-store.ts";
import { TicketVerifier } from "./ticket-verifier.ts";

/** The evidence, as far as tickets need it. */
interface TicketLedger extends TicketLog {
  status(): readonly { readonly tenant: string }[];
}

interface TicketsParts {
  readonly store: TicketStore;
  readonly ledger: TicketLedger;
  readonly keys: TicketKeyStore;
  readonly rule: TicketRule;
  readonly clock: Clock;
  /** Monotonic, milliseconds. */
  readonly elapsedMs: () => number;
  readonly random: Random;
  readonly newId: () => string;
  readonly knows: (tenant: string, principal: string) => boolean;
  readonly onEvent: TicketObserver;
  readonly onWarning: (message: string, fields: object) => void;
}

const sweepMs = 60_000;

/** The capability tickets of all tenants. */
export class Tickets {
  readonly verifier: TicketVerifier;
  readonly office: TicketOffice;
  readonly keys: TicketKeys;
  readonly #parts: TicketsParts;
  readonly #timer: NodeJS.Timeout;
  #sweeping: Promise<void> = Promise.resolve();

  private constructor(parts: TicketsParts, keys: TicketKeys) {
    const clock = forwardClock(parts.clock, parts.elapsedMs);
    const book = new TicketBook(parts.store);
    this.#parts = parts;
    this.keys = keys;
    this.verifier = new TicketVerifier({ keys, book, clock, onEvent: parts.onEvent });
    this.office = new TicketOffice({ ...parts, log: parts.ledger, keys, book, clock });
    this.#timer = setInterval(() => this.#sweepAll(), sweepMs).unref();
  }

  static async open(parts: TicketsParts): Promise<Tickets> {
    const tenants = parts.ledger.status().map(({ tenant }) => tenant);
    const tickets = new Tickets(parts, await TicketKeys.open({ ...parts, log: parts.ledger, tenants }));
    tickets.#sweepAll();
    return tickets;
  }

  /** Sweeps no more; resolves when no sweep is under way. */
  async close(): Promise<void> {
    clearInterval(this.#timer);
    await this.#sweeping;
  }

  #sweepAll(): void {
    this.#sweeping = this.#sweeping.then(async () => {
      for (const { tenant } of this.#parts.ledger.status()) await this.#sweep(tenant);
    });
  }

  /** What cannot be swept now permits nothing nonetheless, and is swept later. */
  async #sweep(tenant: string): Promise<void> {
    try {
      await this.office.sweep(tenant);
    } catch (cause) {
      const text = cause instanceof Error ? cause.message : String(cause);
      this.#parts.onWarning("expired tickets are kept", { tenant, cause: text });
    }
  }
}

/** Time as the system tells it, as long as that does not go back: a ticket that expired stays so. */
function forwardClock(clock: Clock, elapsedMs: () => number): Clock {
  const begin = clock() - elapsedMs();
  return () => Math.max(clock(), Math.floor(begin + elapsedMs()));
}
