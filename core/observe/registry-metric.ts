/** A metric as prom-client tells of it. */
export interface RegistryMetric {
  readonly name: string;
  readonly help: string;
  /** As prom-client names it. */
  readonly type: unknown;
  readonly values: readonly RegistryValue[];
}

export interface RegistryValue {
  readonly value: number;
  readonly labels: Readonly<Partial<Record<string, string | number>>>;
  /** Of a histogram: `<name>_bucket`, `<name>_sum` or `<name>_count`. */
  readonly metricName?: string;
  /** Of a histogram's bucket: the latest of those in it that were traced. */
  readonly exemplar?: Exemplar | null | undefined;
}

export interface Exemplar {
  readonly labelSet: Readonly<Record<string, string>>;
  readonly value: number;
  /** Seconds since 1970. */
  readonly timestamp: number;
}
