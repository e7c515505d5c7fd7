import { tenantPrefix } from "../store/key-range.ts";

export interface UsageCount {
  readonly requests: number;
  /** Tokens, like the members below. */
  readonly input: number;
  readonly output: number;
  /** The part of the input that came from a provider's cache. */
  readonly cachedInput: number;
}

/** The usage of one model by one principal on one day. Provider and model have their configured names. */
export interface UsageRow extends UsageCount {
  readonly day: Day;
  readonly principal: string;
  /** The id of the principal's key; null in the row `other`. */
  readonly keyId: string | null;
  readonly provider: string;
  readonly model: string;
}

/** The name of the row that rows beyond the limit of a day are merged into. */
export const other = "other";

const separator = "/";

/** `principal/provider/model`. Neither principals nor providers have a `/` in their names; a model may. */
export function rowName({ principal, provider, model }: UsageRow): string {
  return [principal, provider, model].join(separator);
}

/** The key prefix of all rows of a day of a tenant; ends in `/`. */
export function dayPrefix(tenant: string, day: Day): string {
  return `${tenantPrefix(tenant)}usage/${day}/`;
}

export function writeRow({ keyId, requests, input, output, cachedInput }: UsageRow): string {
  return JSON.stringify([keyId, requests, input, output, cachedInput]);
}

/** Parses an entry. `name`: its key behind the prefix of the day. */
export function readRow(day: Day, name: string, text: string): UsageRow {
  const [principal, provider, ...model] = name.split(separator) as [string, string, ...string[]];
  const [keyId, requests, input, output, cachedInput] = JSON.parse(text) as [
    string | null,
    number,
    number,
    number,
    number,
  ];
  return { day, principal, provider, model: model.join(separator), keyId, requests, input, output, cachedInput };
}

/** Adds counts to a row. */
export function addRows(row: UsageRow, more: UsageCount | undefined): UsageRow {
  if (more === undefined) return row;
  return { ...row, ...addCounts(row, more) };
}

export function addCounts(a: UsageCount, b: UsageCount): UsageCount {
  return {
    requests: a.requests + b.requests,
    input: a.input + b.input,
    output: a.output + b.output,
    cachedInput: a.cachedInput + b.cachedInput,
  };
}

/** Returns the counts that take back what was counted. */
export function negateCounts({ requests, input, output, cachedInput }: UsageCount): UsageCount {
  return { requests: -requests, input: -input, output: -output, cachedInput: -cachedInput };
}

export function isEmptyCount({ requests, input, output, cachedInput }: UsageCount): boolean {
  return [requests, input, output, cachedInput].every((count) => count === 0);
}

/** `2026-11-22`, in UTC. */
export type Day = string;

const dayMs = 86_400_000;

export function dayOf(ms: number): Day {
  return new Date(ms).toISOString().slice(0, 10);
}

/** Returns the day so many days later; earlier where `days` is negative. */
export function addDays(day: Day, days: number): Day {
  return dayOf(Date.parse(day) + days * dayMs);
}

export type PeriodUnit = "day" | "month";

/** The day itself, or its month: `2026-11`. */
export function periodOf(unit: PeriodUnit, day: Day): string {
  return unit === "day" ? day : day.slice(0, 7);
}

/** The first day of the next period. */
export function nextPeriod(unit: PeriodUnit, day: Day): Day {
  return unit === "day" ? addDays(day, 1) : `${addDays(`${day.slice(0, 7)}-01`, 31).slice(0, 7)}-01`;
}
