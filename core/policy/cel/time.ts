import { CelFailure, type CelResult, type CelValue, TimeSpan, Timestamp } from "./value.ts";

const second = 1_000_000_000n;
const maxSpan = 9_223_372_036_854_775_807n;
const minSpan = -9_223_372_036_854_775_808n;
/** The years 1 to 9999, in seconds. */
const maxSeconds = 253_402_300_799n;
const minSeconds = -62_135_596_800n;
const maxMs = 253_402_300_799_000;
const minMs = -62_135_596_800_000;
/** The longest distance that can be written: 10,000 years. */
const maxSpanSeconds = 315_576_000_000n;

const rfc3339 = /^(\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2})(?:\.(\d{1,9}))?(?:Z|([+-]\d\d:\d\d))$/;

/** Parses an RFC 3339 time; to the nanosecond, in the years 1 to 9999. */
export function parseTimestamp(text: string): Timestamp | CelFailure {
  const [, moment, fraction = "", offset = "Z"] = rfc3339.exec(text) ?? [];
  const ms = moment === undefined ? Number.NaN : Date.parse(`${moment}${offset}`);
  if (Number.isNaN(ms)) return new CelFailure("expected a time as RFC 3339 writes it");
  if (ms < minMs || ms > maxMs) return new CelFailure("expected a time in the years 1 to 9999");
  return new Timestamp(BigInt(ms / 1_000), Number(fraction.padEnd(9, "0")));
}

/** Converts to a time: an RFC 3339 text, or milliseconds since 1970. Undefined for other types. */
export function toTime(value: CelValue): CelResult | undefined {
  if (typeof value === "string") return parseTimestamp(value);
  if (typeof value === "bigint") {
    const ms = Number(value);
    const seconds = Math.floor(ms / 1_000);
    return new Timestamp(BigInt(seconds), (ms - seconds * 1_000) * 1_000_000);
  }
  return value instanceof Timestamp ? value : undefined;
}

/** Converts to a duration: a text like `1h30m`, or seconds. Undefined for other types. */
export function toSpan(value: CelValue): CelResult | undefined {
  if (typeof value === "string") return parseSpan(value);
  if (typeof value === "bigint") return new TimeSpan(value, 0);
  return value instanceof TimeSpan ? value : undefined;
}

const unitNanos: Readonly<Record<string, bigint>> = {
  ns: 1n,
  us: 1_000n,
  µs: 1_000n,
  ms: 1_000_000n,
  s: second,
  m: 60n * second,
  h: 3_600n * second,
};
const spanPart = /(?:(\d+)(?:\.(\d*))?|\.(\d+))(ns|us|µs|ms|s|m|h)/y;

function parseSpan(text: string): TimeSpan | CelFailure {
  if (/^[+-]?0$/.test(text)) return new TimeSpan(0n, 0);
  const isSigned = /^[+-]/.test(text);
  let nanos = 0n;
  spanPart.lastIndex = isSigned ? 1 : 0;
  while (spanPart.lastIndex < text.length) {
    const [, whole = "0", decimals, onlyDecimals, unit = ""] = spanPart.exec(text) ?? [];
    const factor = unitNanos[unit];
    if (factor === undefined) return new CelFailure("expected a duration like `1h30m`");
    const fraction = decimals || onlyDecimals || "0";
    nanos += BigInt(whole) * factor + (BigInt(fraction) * factor) / 10n ** BigInt(fraction.length);
  }
  return spanOf(text.startsWith("-") ? -nanos : nanos);
}

function spanOf(nanos: bigint): TimeSpan | CelFailure {
  if (nanos > maxSpan || nanos < minSpan) return new CelFailure("duration out of range");
  return new TimeSpan(nanos / second, Number(nanos % second));
}

function timeOf(nanos: bigint): Timestamp | CelFailure {
  const rest = ((nanos % second) + second) % second;
  const seconds = (nanos - rest) / second;
  if (seconds > maxSeconds || seconds < minSeconds) return new CelFailure("timestamp out of range");
  return new Timestamp(seconds, Number(rest));
}

function nanosOf({ seconds, nanos }: Timestamp | TimeSpan): bigint {
  return seconds * second + BigInt(nanos);
}

/** Adds durations, or a time and a duration; undefined for other types. */
export function addTimes(a: CelValue, b: CelValue): CelResult | undefined {
  if (a instanceof TimeSpan) {
    if (b instanceof TimeSpan) return spanOf(nanosOf(a) + nanosOf(b));
    return b instanceof Timestamp ? timeOf(nanosOf(a) + nanosOf(b)) : undefined;
  }
  return a instanceof Timestamp && b instanceof TimeSpan ? timeOf(nanosOf(a) + nanosOf(b)) : undefined;
}

/** Subtracts a duration from a time, or one from another of its type; undefined for other types. */
export function subtractTimes(a: CelValue, b: CelValue): CelResult | undefined {
  if (a instanceof Timestamp) {
    if (b instanceof Timestamp) return spanOf(nanosOf(a) - nanosOf(b));
    return b instanceof TimeSpan ? timeOf(nanosOf(a) - nanosOf(b)) : undefined;
  }
  return a instanceof TimeSpan && b instanceof TimeSpan ? spanOf(nanosOf(a) - nanosOf(b)) : undefined;
}

/** Formats a time or a duration as JSON would hold it. */
export function formatTime(value: Timestamp | TimeSpan): CelResult {
  return value instanceof Timestamp ? formatMoment(value) : formatSpan(value);
}

function formatMoment({ seconds, nanos }: Timestamp): CelResult {
  const ms = Number(seconds) * 1_000;
  const isWritable = ms >= minMs && ms <= maxMs && nanos >= 0 && nanos <= 999_999_999;
  if (!isWritable) return new CelFailure("expected a time in the years 1 to 9999");
  return `${new Date(ms).toISOString().slice(0, -".000Z".length)}${formatNanos(nanos)}Z`;
}

function formatSpan({ seconds, nanos }: TimeSpan): CelResult {
  if (seconds > maxSpanSeconds || seconds < -maxSpanSeconds) return new CelFailure("duration out of range");
  const sign = nanos < 0 && seconds === 0n ? "-" : "";
  return `${sign}${seconds}${formatNanos(Math.abs(nanos))}s`;
}

/** The fraction in three, six or nine digits; nothing where there is none. */
function formatNanos(nanos: number): string {
  return nanos === 0
    ? ""
    : `.${String(nanos)
        .padStart(9, "0")
        .replace(/(000){1,2}$/, "")}`;
}

const day = 86_400_000;
const timeReaders = {
  getFullYear: (date: Date) => date.getUTCFullYear(),
  getMonth: (date: Date) => date.getUTCMonth(),
  getDate: (date: Date) => date.getUTCDate(),
  getDayOfMonth: (date: Date) => date.getUTCDate() - 1,
  getDayOfWeek: (date: Date) => date.getUTCDay(),
  getDayOfYear: (date: Date) => Math.floor((date.getTime() - new Date(date).setUTCMonth(0, 1)) / day),
  getHours: (date: Date) => date.getUTCHours(),
  getMinutes: (date: Date) => date.getUTCMinutes(),
  getSeconds: (date: Date) => date.getUTCSeconds(),
  getMilliseconds: (date: Date) => date.getUTCMilliseconds(),
} as const;
const spanReaders: { readonly [Name in TimePart]?: (span: TimeSpan) => bigint } = {
  getHours: ({ seconds }) => seconds / 3_600n,
  getMinutes: ({ seconds }) => seconds / 60n,
  getSeconds: ({ seconds }) => seconds,
  getMilliseconds: ({ nanos }) => BigInt(nanos) / 1_000_000n,
};

/** The methods of times and durations that read a part of them. */
export type TimePart = keyof typeof timeReaders;
export const timeParts = Object.keys(timeReaders) as readonly TimePart[];

/** Returns true where `readTimePart` has a meaning for these types. */
export function hasTimePart(name: TimePart, value: CelValue, zone: CelValue | undefined): boolean {
  if (value instanceof TimeSpan) return zone === undefined && spanReaders[name] !== undefined;
  return value instanceof Timestamp && (zone === undefined || typeof zone === "string");
}

/** Reads a part of a time, in UTC or in `zone`, or of a duration. */
export function readTimePart(name: TimePart, value: CelValue, zone: CelValue | undefined): CelResult | undefined {
  if (value instanceof TimeSpan) return spanReaders[name]?.(value);
  if (!(value instanceof Timestamp)) return undefined;
  const date = toDate(value, zone as string | undefined);
  const part = date === undefined ? Number.NaN : timeReaders[name](date);
  return Number.isNaN(part) ? new CelFailure("expected a time and a time zone that there are") : BigInt(part);
}

const fixedOffset = /^([+-]?)(\d\d):(\d\d)$/;

/** The moment as the clocks of the zone show it, as if it were UTC; undefined for an unknown zone. */
function toDate({ seconds, nanos }: Timestamp, zone = "+00:00"): Date | undefined {
  const ms = Number(seconds) * 1_000 + Math.round(nanos / 1_000_000);
  const [, sign, hours, minutes] = fixedOffset.exec(zone) ?? [];
  if (hours === undefined) return zonedDate(new Date(ms), zone);
  const offset = (Number(hours) * 60 + Number(minutes)) * 60_000;
  return new Date(sign === "-" ? ms - offset : ms + offset);
}

const zonedParts = {
  hourCycle: "h23",
  year: "numeric",
  month: "numeric",
  day: "2-digit",
  hour: "2-digit",
  minute: "2-digit",
  second: "2-digit",
} as const;

function zonedDate(date: Date, timeZone: string): Date | undefined {
  try {
    const format = new Intl.DateTimeFormat("en-US", { ...zonedParts, timeZone });
    const part = new Map(format.formatToParts(date).map(({ type, value }) => [type, Number(value)]));
    const read = (name: Intl.DateTimeFormatPartTypes): number => part.get(name) ?? Number.NaN;
    const zoned = new Date(0);
    zoned.setUTCFullYear(read("year"), read("month") - 1, read("day"));
    zoned.setUTCHours(read("hour"), read("minute"), read("second"), date.getUTCMilliseconds());
    return zoned;
  } catch {
    // The error of an unknown zone quotes it, and it may be a secret.
    return undefined;
  }
}
