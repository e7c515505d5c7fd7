import type { BatchOperation } from "../action/commit-hook.ts";
import { rangeOf, tenantPrefix } from "../store/key-range.ts";
import type { Store } from "../store/open.ts";
import {
  addDays,
  addRows,
  type Day,
  dayPrefix,
  isEmptyCount,
  other,
  readRow,
  rowName,
  type UsageRow,
  writeRow,
} from "./usage-row.ts";

export interface UsageStoreOptions {
  readonly store: Store;
  /** True where a row stays separate however small its counts are. */
  readonly isKept: (tenant: string, row: UsageRow) => boolean;
  /** Rows of a day of a tenant; 1,000 where absent. */
  readonly maxRows?: number;
  /** Interval of writes; 10 s where absent. */
  readonly flushMs?: number;
  /** Called where counts could not be written; they stay in memory, and are written later. */
  readonly onWarning: (message: string, fields: object) => void;
}

/** The rows of one day by their names. */
type DayRows = Map<string, UsageRow>;

/** Counts of one day of a tenant that are not written yet. */
interface PendingDay {
  readonly tenant: string;
  readonly day: Day;
  readonly rows: DayRows;
}

const defaultMaxRows = 1_000;
const defaultFlushMs = 10_000;
/** Days that are kept, today included: a year and a month. */
const keptDays = 400;
/** Share of `maxRows` that merging leaves, so that the next rows find room. */
const keptShare = 0.9;

/**
 * Token counts by principal, model and day. Counts stay in memory until they are written: every few seconds, before they
 * are read, and on close. A crash loses those seconds, a power cut also what the system had not written by then.
 */
export class UsageStore {
  readonly #options: UsageStoreOptions;
  readonly #timer: NodeJS.Timeout;
  /** By the key prefix of the day. */
  readonly #pending = new Map<string, PendingDay>();
  /** By tenant, the day on which its old rows were removed last. */
  readonly #pruned = new Map<string, Day>();
  #writing: Promise<void> = Promise.resolve();

  constructor(options: UsageStoreOptions) {
    this.#options = options;
    const flush = (): void => {
      this.flush().catch((error) => options.onWarning("usage_write_failed", { err: String(error) }));
    };
    this.#timer = setInterval(flush, options.flushMs ?? defaultFlushMs).unref();
  }

  /** Adds counts to those of a row. Negative ones take back what was counted. */
  add(tenant: string, row: UsageRow): void {
    const { rows } = this.#pendingDay(tenant, row.day);
    const name = rowName(row);
    rows.set(name, addRows(row, rows.get(name)));
    this.#mergeSmallRows(tenant, rows);
  }

  /** Resolves once everything counted before is written. Rejects where it cannot be written, and keeps it. */
  flush(): Promise<void> {
    const written = this.#writing.then(() => this.#writePending());
    this.#writing = written.catch(() => undefined);
    return written;
  }

  /** Reads the written rows of a tenant from one day to another, both included. */
  async *rows(tenant: string, from: Day, to: Day): AsyncGenerator<UsageRow> {
    const all = rangeOf(`${tenantPrefix(tenant)}usage/`);
    const start = all.gte.length;
    const range = { gte: all.gte + from, lt: dayPrefix(tenant, addDays(to, 1)) };
    for await (const [key, text] of this.#options.store.iterator(range)) {
      const day = key.slice(start, key.indexOf("/", start));
      yield readRow(day, key.slice(dayPrefix(tenant, day).length), text);
    }
  }

  /** Writes the pending counts and stops the timer. Rejects where they cannot be written. */
  async close(): Promise<void> {
    clearInterval(this.#timer);
    await this.flush();
  }

  async #writePending(): Promise<void> {
    for (const [prefix, pending] of [...this.#pending]) {
      this.#pending.delete(prefix);
      try {
        await this.#write(prefix, pending);
      } catch (error) {
        this.#putBack(pending);
        throw error;
      }
    }
  }

  async #write(prefix: string, { tenant, day, rows }: PendingDay): Promise<void> {
    await this.#prune(tenant, day);
    const { store } = this.#options;
    const entries = await store.iterator(rangeOf(prefix)).all();
    const merged: DayRows = new Map(
      entries.map(([key, text]) => [key.slice(prefix.length), readRow(day, key.slice(prefix.length), text)]),
    );
    const before = new Map(merged);
    for (const [name, row] of rows) merged.set(name, addRows(row, merged.get(name)));
    for (const [name, row] of merged) if (isEmptyCount(row)) merged.delete(name);
    this.#mergeSmallRows(tenant, merged);
    const changed = [...merged].filter(([name, row]) => before.get(name) !== row);
    const operations: readonly BatchOperation[] = [
      ...changed.map(([name, row]) => ({ type: "put", key: prefix + name, value: writeRow(row) }) as const),
      ...[...before.keys()].flatMap((name) => (merged.has(name) ? [] : [{ type: "del", key: prefix + name } as const])),
    ];
    await store.batch([...operations]);
  }

  /** Removes the rows of days that are too old, once a day. */
  async #prune(tenant: string, day: Day): Promise<void> {
    if (this.#pruned.get(tenant) === day) return;
    const { gte } = rangeOf(`${tenantPrefix(tenant)}usage/`);
    await this.#options.store.clear({ gte, lt: dayPrefix(tenant, addDays(day, 1 - keptDays)) });
    this.#pruned.set(tenant, day);
  }

  #putBack({ tenant, day, rows }: PendingDay): void {
    const pending = this.#pendingDay(tenant, day);
    for (const [name, row] of rows) pending.rows.set(name, addRows(row, pending.rows.get(name)));
    this.#mergeSmallRows(tenant, pending.rows);
  }

  #pendingDay(tenant: string, day: Day): PendingDay {
    const prefix = dayPrefix(tenant, day);
    const known = this.#pending.get(prefix);
    if (known !== undefined) return known;
    const pending: PendingDay = { tenant, day, rows: new Map() };
    this.#pending.set(prefix, pending);
    return pending;
  }

  /** Merges the rows with the smallest counts into `other` where there are too many; kept rows never. */
  #mergeSmallRows(tenant: string, rows: DayRows): void {
    const { maxRows = defaultMaxRows, isKept } = this.#options;
    if (rows.size <= maxRows) return;
    const mergeable = [...rows.values()].filter((row) => row.principal !== other && !isKept(tenant, row));
    const excess = rows.size - Math.floor(maxRows * keptShare);
    for (const row of mergeable.sort((a, b) => weightOf(a) - weightOf(b)).slice(0, excess)) {
      const merged: UsageRow = { ...row, principal: other, keyId: null, provider: other, model: other };
      rows.delete(rowName(row));
      rows.set(rowName(merged), addRows(merged, rows.get(rowName(merged))));
    }
  }
}

function weightOf({ requests, input, output }: UsageRow): number {
  return input + output + requests;
}
