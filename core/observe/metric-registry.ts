import { Counter, Gauge, type Metric, Registry } from "prom-client";
import { BucketHistogram } from "./bucket-histogram.ts";

/** A registry that makes its metrics itself. */
export class MetricRegistry extends Registry {
  counter<Label extends string>(name: string, help: string, ...labelNames: Label[]): Counter<Label> {
    return new Counter({ name, help, labelNames, registers: [this] });
  }

  gauge<Label extends string>(name: string, help: string, ...labelNames: Label[]): Gauge<Label> {
    return new Gauge({ name, help, labelNames, registers: [this] });
  }

  /** `buckets` are upper bounds. */
  histogram(name: string, help: string, buckets: readonly number[], ...labelNames: readonly string[]): BucketHistogram {
    const histogram = new BucketHistogram(name, help, buckets, labelNames);
    this.registerMetric(histogram as unknown as Metric);
    return histogram;
  }
}
