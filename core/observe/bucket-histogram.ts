import type { RegistryMetric, RegistryValue } from "./open-metrics.ts";

interface BucketSeries {
  readonly labels: Readonly<Record<string, string>>;
  /** Observations up to each bound and above the one before it; the last are above every bound. */
  readonly counts: Float64Array;
  sum: number;
}

/**
 * A histogram for a registry of prom-client. Its own checks the labels of each observation and hashes them, some six times
 * a call; this one finds the series by their values. Labels come from closed sets, so the series are bounded.
 */
export class BucketHistogram {
  readonly name: string;
  readonly help: string;
  readonly type = "histogram";
  readonly aggregator = "sum";
  readonly #bounds: readonly number[];
  readonly #labelNames: readonly string[];
  readonly #series = new Map<string, BucketSeries>();

  /** `bounds` are the upper bounds of the buckets, ascending. */
  constructor(name: string, help: string, bounds: readonly number[], labelNames: readonly string[]) {
    this.name = name;
    this.help = help;
    this.#bounds = bounds;
    this.#labelNames = labelNames;
    if (labelNames.length === 0) this.#begin("", []);
  }

  /** Counts a value; `labels` are in the order of the names. Throws TypeError for a value that is not a finite number. */
  observe(value: number, ...labels: readonly string[]): void {
    if (!Number.isFinite(value)) throw new TypeError(`${this.name}: expected a finite number, got ${value}`);
    const key = labels.length === 1 ? (labels[0] as string) : labels.join("\n");
    const series = this.#series.get(key) ?? this.#begin(key, labels);
    let bucket = 0;
    while (bucket < this.#bounds.length && value > (this.#bounds[bucket] as number)) bucket++;
    series.counts[bucket] = (series.counts[bucket] as number) + 1;
    series.sum += value;
  }

  /** Read by the registry. */
  async get(): Promise<RegistryMetric> {
    const values = [...this.#series.values()].flatMap((series) => this.#valuesOf(series));
    return { name: this.name, help: this.help, type: this.type, values };
  }

  /** Deletes every observation. */
  reset(): void {
    this.#series.clear();
  }

  #begin(key: string, values: readonly string[]): BucketSeries {
    const labels = Object.fromEntries(this.#labelNames.map((name, at) => [name, values[at] ?? ""]));
    const series = { labels, counts: new Float64Array(this.#bounds.length + 1), sum: 0 };
    this.#series.set(key, series);
    return series;
  }

  /** Prometheus counts what is at most a bound. */
  #valuesOf({ labels, counts, sum }: BucketSeries): RegistryValue[] {
    let count = 0;
    const values: RegistryValue[] = [...counts].map((own, at) => {
      count += own;
      return { labels: { le: this.#bounds[at] ?? "+Inf", ...labels }, value: count, metricName: `${this.name}_bucket` };
    });
    values.push({ labels, value: sum, metricName: `${this.name}_sum` });
    values.push({ labels, value: count, metricName: `${this.name}_count` });
    return values;
  }
}
