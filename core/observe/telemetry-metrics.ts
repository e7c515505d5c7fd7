import { Counter, type Registry } from "prom-client";

/** What is told to a collector. */
export type Signal = "spans" | "metrics";
/** `failed`: the collector did not take it. `dropped`: it was never asked to, for want of room or time. */
export type TellResult = "sent" | "failed" | "dropped";

/** What is counted of OpenTelemetry, on the registry of all metrics. */
export class TelemetryMetrics {
  readonly #told: Counter<"signal" | "result">;

  constructor(registry: Registry) {
    this.#told = new Counter({
      name: "gateway_telemetry_total",
      help: "Spans, and reports of metrics, by what became of them on their way to the collector",
      labelNames: ["signal", "result"],
      registers: [registry],
    });
  }

  told(signal: Signal, result: TellResult, count: number): void {
    this.#told.inc({ signal, result }, count);
  }
}
