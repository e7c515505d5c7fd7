import { addCounts, type Day, type UsageCount, type UsageRow } from "./usage-row.ts";

/** What counts can be told apart by, in the order in which they are sorted. */
export const usageDimensions = ["day", "principal", "provider", "model"] as const;
export type UsageDimension = (typeof usageDimensions)[number];

export interface UsageQuery {
  /** Both included. */
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

/** With the members that it was asked by, and the principal's key beside the principal. */
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
  /** Of every page together. */
  readonly totals: UsageTotals;
  readonly items: readonly UsageItem[];
  /** Where the next page begins; null after the last. */
  readonly next: string | null;
}

interface Group {
  readonly first: UsageRow;
  readonly count: UsageCount;
}

const nothing: UsageCount = { requests: 0, input: 0, output: 0, cachedInput: 0 };

/** Adds up rows by what is asked for. A cursor is the name of the last group that was told: printable, without spaces. */
export async function reportUsage(rows: AsyncIterable<UsageRow>, query: UsageQuery): Promise<UsagePage> {
  const { from, to, limit, cursor = "" } = query;
  const by = usageDimensions.filter((dimension) => query.by.includes(dimension));
  const groups = new Map<string, Group>();
  let total = nothing;
  for await (const row of rows) {
    const name = by.map((dimension) => row[dimension]).join("/");
    const known = groups.get(name);
    groups.set(name, { first: known?.first ?? row, count: addCounts(known?.count ?? nothing, row) });
    total = addCounts(total, row);
  }
  const names = [...groups.keys()].filter((name) => name > cursor).sort();
  const told = names.slice(0, limit);
  return {
    from,
    to,
    totals: totalsOf(total),
    items: told.map((name) => itemOf(groups.get(name) as Group, by)),
    next: names.length > limit ? (told.at(-1) ?? null) : null,
  };
}

function itemOf({ first, count }: Group, by: readonly UsageDimension[]): UsageItem {
  const named = Object.fromEntries(by.map((dimension) => [dimension, first[dimension]]));
  return { ...named, ...(by.includes("principal") ? { key_id: first.keyId } : {}), ...totalsOf(count) };
}

function totalsOf({ requests, input, output, cachedInput }: UsageCount): UsageTotals {
  return { requests, input_tokens: input, output_tokens: output, cached_input_tokens: cachedInput };
}
