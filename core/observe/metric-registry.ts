import { Counter, Gauge, Histogram, Registry } from "prom-client";

/** A registry that makes its metrics itself. */
export class MetricRegistry extends Registry {
  counter<Label extends string>(name: string, help: string, ...labelNames: Label[]): Counter<Label> {
    return new Counter({ name, help, labelNames, registers: [this] });
  }

  gauge<Label extends string>(name: string, help: string, ...labelNames: Label[]): Gauge<Label> {
    return new Gauge({ name, help, labelNames, registers: [this] });
  }

  /** `buckets` are upper bounds. */
  histogram<Label extends string>(
    name: string,
    help: string,
    buckets: number[],
    ...labelNames: Label[]
  ): Histogram<Label> {
    return new Histogram({ name, help, buckets, labelNames, registers: [this] });
  }
}
