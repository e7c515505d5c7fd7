import { Counter, Gauge, Histogram, type Registry } from "prom-client";

const fuelShares = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 1];

/** What is counted of plugins, on the registry of all metrics. */
export class PluginMetrics {
  readonly #breaches: Counter<"reason">;
  readonly #rests: Counter;
  readonly #fuel: Histogram;
  readonly #threads: Gauge;
  readonly #waiting: Gauge;

  constructor(registry: Registry) {
    const registers = [registry];
    this.#breaches = new Counter({
      name: "gateway_plugin_breaches_total",
      help: "Times a plugin did not answer within its bounds and the action was blocked, by why",
      labelNames: ["reason"],
      registers,
    });
    this.#rests = new Counter({
      name: "gateway_plugin_rests_total",
      help: "Times a plugin failed too often for a tenant, and is left alone for a while: it blocks unasked",
      registers,
    });
    this.#fuel = new Histogram({
      name: "gateway_plugin_fuel_ratio",
      help: "Share of its fuel that a call of a plugin took; 1 where it ran out",
      buckets: fuelShares,
      registers,
    });
    this.#threads = new Gauge({
      name: "gateway_plugin_threads",
      help: "Threads that stand by for long calls of plugins, or run one",
      registers,
    });
    this.#waiting = new Gauge({
      name: "gateway_plugin_calls_waiting",
      help: "Long calls of plugins that wait for a thread now",
      registers,
    });
  }

  /** `reason` is of the closed list of a plugin's breaches. */
  breached(reason: string): void {
    this.#breaches.inc({ reason });
  }

  rests(): void {
    this.#rests.inc();
  }

  /** `share` from 0 to 1. */
  spent(share: number): void {
    this.#fuel.observe(share);
  }

  threads(count: number): void {
    this.#threads.set(count);
  }

  callsWaiting(count: number): void {
    this.#waiting.set(count);
  }
}
