import { attributesOf, bytesAt, doubleAt, fieldsOf, messagesIn, numberAt } from "./otlp-reader.ts";

/** A metric as a collector reads it. */
export interface ToldMetric {
  readonly name: string;
  readonly unit: string;
  readonly kind: "gauge" | "sum" | "histogram";
  readonly points: readonly ToldPoint[];
}

export interface ToldPoint {
  readonly attributes: Readonly<Record<string, unknown>>;
  /** Of a gauge or a sum; of a histogram how many there were. */
  readonly value: number;
  /** Of a histogram. */
  readonly sum: number;
  readonly bounds: readonly number[];
  /** Between the bounds, and one more above the last. */
  readonly counts: readonly number[];
}

type Message = ReturnType<typeof fieldsOf>;
const kinds = { gauge: 5, sum: 7, histogram: 9 } as const;

/** Reads `ExportMetricsServiceRequest`, by the field numbers of opentelemetry-proto. */
export function readProtobufMetrics(body: Buffer): readonly ToldMetric[] {
  const scopes = messagesIn(fieldsOf(body), 1).flatMap((resource) => messagesIn(resource, 2));
  return scopes.flatMap((scope) => messagesIn(scope, 2).map(metricOf));
}

function metricOf(metric: Message): ToldMetric {
  const [kind, field] = (Object.entries(kinds) as [ToldMetric["kind"], number][]).find(([, number]) =>
    metric.has(number),
  ) ?? ["gauge", kinds.gauge];
  const points = messagesIn(metric, field).flatMap((data) => messagesIn(data, 1));
  return {
    name: bytesAt(metric, 1).toString("utf8"),
    unit: bytesAt(metric, 3).toString("utf8"),
    kind,
    points: points.map(kind === "histogram" ? histogramPoint : numberPoint),
  };
}

function numberPoint(point: Message): ToldPoint {
  const value = point.has(6) ? numberAt(point, 6) : doubleAt(point, 4);
  return { attributes: attributesOf(point, 7), value, sum: 0, bounds: [], counts: [] };
}

function histogramPoint(point: Message): ToldPoint {
  const [counts, bounds] = [eights(bytesAt(point, 6)), eights(bytesAt(point, 7))];
  return {
    attributes: attributesOf(point, 9),
    value: numberAt(point, 4),
    sum: doubleAt(point, 5),
    counts: counts.map((bytes) => Number(bytes.readBigUInt64LE())),
    bounds: bounds.map((bytes) => bytes.readDoubleLE()),
  };
}

/** Packed numbers of eight bytes each. */
function eights(bytes: Buffer): readonly Buffer[] {
  return Array.from({ length: bytes.length / 8 }, (_, at) => bytes.subarray(at * 8, at * 8 + 8));
}

/** A metric's series as `/metrics` writes them. */
export function seriesOf({ name, kind, points }: ToldMetric): readonly (readonly [series: string, value: number])[] {
  return points.flatMap(({ attributes, value, sum, bounds, counts }) => {
    if (kind !== "histogram") return [[name + labelsOf(attributes), value] as const];
    const upTo = counts.map((_, at) => counts.slice(0, at + 1).reduce((total, count) => total + count, 0));
    const buckets = upTo.map((count, at) => {
      const le = bounds[at] === undefined ? "+Inf" : String(bounds[at]);
      return [`${name}_bucket${labelsOf({ le, ...attributes })}`, count] as const;
    });
    return [...buckets, [`${name}_sum${labelsOf(attributes)}`, sum], [`${name}_count${labelsOf(attributes)}`, value]];
  });
}

function labelsOf(attributes: ToldPoint["attributes"]): string {
  const pairs = Object.entries(attributes).map(([name, value]) => `${name}="${value}"`);
  return pairs.length === 0 ? "" : `{${pairs.join(",")}}`;
}
