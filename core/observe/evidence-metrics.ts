import { Counter, Histogram, type Registry } from "prom-client";

const appendSeconds = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 5];
const batchRecords = [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024];

/** What is counted of evidence on its way to the disk, on the registry of all metrics. */
export class EvidenceMetrics {
  readonly #append: Histogram;
  readonly #batch: Histogram;
  readonly #failures: Counter;

  constructor(registry: Registry) {
    const registers = [registry];
    this.#append = new Histogram({
      name: "gateway_evidence_append_duration_seconds",
      help: "Time from a record's getting its place in the chain to its being durable",
      buckets: appendSeconds,
      registers,
    });
    this.#batch = new Histogram({
      name: "gateway_evidence_batch_records",
      help: "Records that became durable together, in one synced write",
      buckets: batchRecords,
      registers,
    });
    this.#failures = new Counter({
      name: "gateway_evidence_write_failures_total",
      help: "Writes of evidence that failed; none of their records is vouched for",
      registers,
    });
  }

  /** Milliseconds that only grow. */
  elapsedMs(): number {
    return performance.now();
  }

  /** A write is durable; `waitedMs` is how long each of its records waited for that. */
  committed(waitedMs: readonly number[]): void {
    this.#batch.observe(waitedMs.length);
    for (const each of waitedMs) this.#append.observe(each / 1000);
  }

  writeFailed(): void {
    this.#failures.inc();
  }
}
