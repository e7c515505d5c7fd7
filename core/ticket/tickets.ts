import type { TicketObserver } from "../action/capability-ticket.ts";
import type { Clock, Random } from "../action/id.ts";
import type { Store } from "../store/open.ts";
import { TicketIssuer, type TicketRule } from "./ticket-issuer.ts";
import { type TicketKeyStore, TicketKeys, type TicketLog } from "./ticket-keys.ts";
import { TicketStore } from "./ticket-store.ts";
import { TicketVerifier } from "./ticket-verifier.ts";

/** The part of the ledger that tickets use. */
interface TicketLedger extends TicketLog {
  status(): readonly { readonly tenant: string }[];
}

interface TicketsOptions {
  readonly store: Store;
  readonly ledger: TicketLedger;
  readonly keys: TicketKeyStore;
  readonly rule: TicketRule;
  /** Never earlier than gateway time: a wall clock that is set back revives no ticket. */
  readonly clock: Clock;
  /** A ticket is deleted once it is over by this clock: one that jumps ahead and back deletes none that is not. */
  readonly sweepClock: Clock;
  readonly random: Random;
  readonly newId: () => string;
  readonly isPrincipal: (tenant: string, principal: string) => boolean;
  readonly onEvent: TicketObserver;
  readonly onWarning: (event: string, fields: object) => void;
}

const sweepMs = 60_000;

/** The capability tickets of all tenants: their issuer, their verifier and their keys. */
export class Tickets {
  readonly verifier: TicketVerifier;
  readonly issuer: TicketIssuer;
  readonly keys: TicketKeys;
  readonly #options: TicketsOptions;
  readonly #timer: NodeJS.Timeout;
  #sweeping: Promise<void> = Promise.resolve();

  private constructor(options: TicketsOptions, keys: TicketKeys) {
    const tickets = new TicketStore(options.store);
    this.#options = options;
    this.keys = keys;
    this.verifier = new TicketVerifier({ ...options, keys, tickets });
    this.issuer = new TicketIssuer({ ...options, log: options.ledger, keys, tickets });
    this.#timer = setInterval(() => this.#sweepAll(), sweepMs).unref();
  }

  static async open(options: TicketsOptions): Promise<Tickets> {
    const tenants = options.ledger.status().map(({ tenant }) => tenant);
    const tickets = new Tickets(options, await TicketKeys.open({ ...options, log: options.ledger, tenants }));
    tickets.#sweepAll();
    return tickets;
  }

  /** Stops the sweeps; resolves when none is running. */
  async close(): Promise<void> {
    clearInterval(this.#timer);
    await this.#sweeping;
  }

  #sweepAll(): void {
    this.#sweeping = this.#sweeping.then(async () => {
      for (const { tenant } of this.#options.ledger.status()) await this.#sweep(tenant);
    });
  }

  /** A failed sweep is repeated later; expired tickets permit nothing meanwhile. */
  async #sweep(tenant: string): Promise<void> {
    try {
      await this.issuer.sweep(tenant);
    } catch (cause) {
      const text = cause instanceof Error ? cause.message : String(cause);
      this.#options.onWarning("ticket_sweep_failed", { tenant, cause: text });
    }
  }
}
