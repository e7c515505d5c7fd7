import { addCounts, type Day, type UsageCount, type UsageRow } from "./usage-row.ts";

/** The members by which counts can be grouped, in sort order. */
export const usageDimensions = ["day", "principal", "provider", "model"] as const;
export type UsageDimension = (typeof usageDimensions)[number];

export interface UsageQuery {
  /** First and last day, both included. */
  readonly from: Day;
  readonly to: Day;
  /** At least one, each once. */
  readonly by: readonly UsageDimension[];
  readonly limit: number;
  /** The `next` of an earlier page. */
  readonly cursor?: string;
}

export interface UsageTotals {
  readonly requests: number;
  readonly input_tokens: number;
  readonly output_tokens: number;
  /** The part of the input that came from a provider's cache. */
  readonly cached_input_tokens: number;
}

/** The totals of one group, with the members it was grouped by; the key beside its principal. */
export interface UsageItem extends UsageTotals {
  readonly day?: Day;
  readonly principal?: string;
  readonly key_id?: string | null;
  readonly provider?: string;
  readonly model?: string;
}

export interface UsagePage {
  readonly from: Day;
  readonly to: Day;
  /** Sums over all pages. */
  readonly totals: UsageTotals;
  readonly items: readonly UsageItem[];
  /** The cursor of the next page; null after the last. */
  readonly next: string | null;
}

interface Group {
  readonly first: UsageRow;
  readonly count: UsageCount;
}

const zero: UsageCount = { requests: 0, input: 0, output: 0, cachedInput: 0 };

/** Sums rows by group. A cursor is the name of the last group of a page: printable, without spaces. */
export async function reportUsage(rows: AsyncIterable<UsageRow>, query: UsageQuery): Promise<UsagePage> {
  const { from, to, limit, cursor = "" } = query;
  const by = usageDimensions.filter((dimension) => query.by.includes(dimension));
  const groups = new Map<string, Group>();
  let total = zero;
  for await (const row of rows) {
    const name = by.map((dimension) => row[dimension]).join("/");
    const known = groups.get(name);
    groups.set(name, { first: known?.first ?? row, count: addCounts(known?.count ?? zero, row) });
    total = addCounts(total, row);
  }
  const names = [...groups.keys()].filter((name) => name > cursor).sort();
  const page = names.slice(0, limit);
  return {
    from,
    to,
    totals: totalsOf(total),
    items: page.map((name) => itemOf(groups.get(name) as Group, by)),
    next: names.length > limit ? (page.at(-1) ?? null) : null,
  };
}

function itemOf({ first, count }: Group, by: readonly UsageDimension[]): UsageItem {
  const named = Object.fromEntries(by.map((dimension) => [dimension, first[dimension]]));
  return { ...named, ...(by.includes("principal") ? { key_id: first.keyId } : {}), ...totalsOf(count) };
}

function totalsOf({ requests, input, output, cachedInput }: UsageCount): UsageTotals {
  return { requests, input_tokens: input, output_tokens: output, cached_input_tokens: cachedInput };
}
