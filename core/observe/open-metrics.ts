export const openMetricsType = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/** Returns whether a scraper accepts OpenMetrics: Prometheus does where it stores exemplars. */
export function wantsOpenMetrics(accept: string | undefined): boolean {
  return accept?.includes("application/openmetrics-text") === true;
}

/** Metrics with exemplars in the text format of OpenMetrics 1.0, where a counter's family is its name without `_total`. */
export function openMetricsText(metrics: readonly RegistryMetric[]): string {
  return `${metrics.flatMap(linesOf).join("\n")}\n# EOF\n`;
}

function linesOf({ name, help, type, values }: RegistryMetric): readonly string[] {
  const family = type === "counter" ? name.replace(/_total$/, "") : name;
  const series = type === "counter" ? `${family}_total` : name;
  const samples = values.map(({ metricName = series, ...value }) => metricName + sampleOf(value));
  return [`# HELP ${family} ${escapeText(help)}`, `# TYPE ${family} ${String(type)}`, ...samples];
}

function sampleOf({ labels, value, exemplar }: RegistryValue): string {
  const sample = `${labelsOf(labels, "")} ${numberOf(value)}`;
  return exemplar ? sample + exemplarOf(exemplar) : sample;
}

function exemplarOf({ labelSet, value, timestamp }: Exemplar): string {
  return ` # ${labelsOf(labelSet, "{}")} ${numberOf(value)} ${timestamp}`;
}

function labelsOf(labels: RegistryValue["labels"], none: string): string {
  const pairs = Object.entries(labels).map(
    ([name, value]) => `${name}="${escapeText(String(value)).replace(/"/g, '\\"')}"`,
  );
  return pairs.length === 0 ? none : `{${pairs.join(",")}}`;
}

function numberOf(value: number): string {
  if (Number.isFinite(value) || Number.isNaN(value)) return String(value);
  return value > 0 ? "+Inf" : "-Inf";
}

function escapeText(text: string): string {
  return text.replace(/\\/g, "\\\\").replace(/\n/g, "\\n");
}

/** A metric as prom-client returns it. */
export interface RegistryMetric {
  readonly name: string;
  readonly help: string;
  /** `counter`, `gauge`, `histogram` or `summary`. */
  readonly type: unknown;
  readonly values: readonly RegistryValue[];
}

export interface RegistryValue {
  readonly value: number;
  readonly labels: Readonly<Partial<Record<string, string | number>>>;
  /** In a histogram: `<name>_bucket`, `<name>_sum` or `<name>_count`. */
  readonly metricName?: string;
  /** In a histogram's bucket: the latest observation in it that was traced. */
  readonly exemplar?: Exemplar | null | undefined;
}

export interface Exemplar {
  readonly labelSet: Readonly<Record<string, string>>;
  readonly value: number;
  /** Seconds since 1970. */
  readonly timestamp: number;
}
