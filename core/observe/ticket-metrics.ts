import { Counter, type Registry } from "prom-client";
import { type TicketEvent, ticketEvents } from "../kernel/capability-ticket.ts";

/** What is counted of capability tickets, on the registry of all metrics. */
export class TicketMetrics {
  readonly #events: Counter<"event">;

  constructor(registry: Registry) {
    this.#events = new Counter({
      name: "gateway_tickets_total",
      help: "Capability tickets issued, revoked and expired, and times one was used, or came with an action and permitted nothing",
      labelNames: ["event"],
      registers: [registry],
    });
    for (const event of ticketEvents) this.#events.inc({ event }, 0);
  }

  happened(event: TicketEvent, times: number): void {
    this.#events.inc({ event }, times);
  }
}
