import type { AbstractLevel } from "abstract-level";
import type { BatchOperation } from "../action/commit-hook.ts";
import { rangeOf, tenantPrefix } from "../store/key-range.ts";
import {
  addDays,
  addRows,
  type Day,
  dayPrefix,
  other,
  readRow,
  rowName,
  type UsageRow,
  writeRow,
} from "./usage-row.ts";

/** The database as this folder uses it. */
export type UsageStore = AbstractLevel<string | Buffer | Uint8Array, string, string>;

export interface UsageBookOptions {
  readonly store: UsageStore;
  /** Whether a row keeps its name however little it counts. */
  readonly stays: (tenant: string, row: UsageRow) => boolean;
  /** Rows of a tenant's day; 1,000 unless told. */
  readonly maxRows?: number;
  /** What was counted is written after so long; 10 s unless told. */
  readonly flushMs?: number;
  /** Says that counts could not be written; they are kept, and written later. */
  readonly onWarning: (message: string, fields: object) => void;
}

interface Shelf {
  readonly tenant: string;
  readonly day: Day;
  readonly rows: DayRows;
}

const usualRows = 1_000;
const usualFlushMs = 10_000;
/** Days that are kept, today included: a year and a month. */
const keptDays = 400;

/**
 * Who used how much of which model, by day. Counts are in memory until they are written, every few seconds, before they
 * are read, and at the end: a crash loses those seconds, and a power cut what the system had not written by then.
 */
export class UsageBook {
  readonly #options: UsageBookOptions;
  readonly #timer: NodeJS.Timeout;
  /** Counted and not written yet, by the prefix of the day. */
  readonly #pending = new Map<string, Shelf>();
  /** By tenant, the day on which what is too old was removed. */
  readonly #pruned = new Map<string, Day>();
  #writing: Promise<void> = Promise.resolve();

  constructor(options: UsageBookOptions) {
    this.#options = options;
    const flush = (): void => {
      this.flush().catch((error) => options.onWarning("usage could not be written", { err: String(error) }));
    };
    this.#timer = setInterval(flush, options.flushMs ?? usualFlushMs).unref();
  }

  add(tenant: string, row: UsageRow): void {
    const { rows } = this.#shelfOf(tenant, row.day);
    const name = rowName(row);
    rows.set(name, addRows(row, rows.get(name)));
    this.#fold(tenant, rows);
  }

  /** Resolves once everything counted before is written; rejects where it cannot be, and keeps it. */
  flush(): Promise<void> {
    const written = this.#writing.then(() => this.#writePending());
    this.#writing = written.catch(() => undefined);
    return written;
  }

  /** A tenant's rows from one day to another, both included, as they are written. */
  async *rows(tenant: string, from: Day, to: Day): AsyncGenerator<UsageRow> {
    const all = rangeOf(`${tenantPrefix(tenant)}usage/`);
    const start = all.gte.length;
    const range = { gte: all.gte + from, lt: dayPrefix(tenant, addDays(to, 1)) };
    for await (const [key, text] of this.#options.store.iterator(range)) {
      const day = key.slice(start, key.indexOf("/", start));
      yield readRow(day, key.slice(dayPrefix(tenant, day).length), text);
    }
  }

  /** Writes what there is, and nothing any more. Rejects where it cannot. */
  async close(): Promise<void> {
    clearInterval(this.#timer);
    await this.flush();
  }

  async #writePending(): Promise<void> {
    for (const [prefix, shelf] of [...this.#pending]) {
      this.#pending.delete(prefix);
      try {
        await this.#write(prefix, shelf);
      } catch (error) {
        this.#putBack(shelf);
        throw error;
      }
    }
  }

  async #write(prefix: string, { tenant, day, rows }: Shelf): Promise<void> {
    await this.#prune(tenant, day);
    const { store } = this.#options;
    const entries = await store.iterator(rangeOf(prefix)).all();
    const merged: DayRows = new Map(
      entries.map(([key, text]) => [key.slice(prefix.length), readRow(day, key.slice(prefix.length), text)]),
    );
    const before = new Map(merged);
    for (const [name, row] of rows) merged.set(name, addRows(row, merged.get(name)));
    this.#fold(tenant, merged);
    const changed = [...merged].filter(([name, row]) => before.get(name) !== row);
    const operations: readonly BatchOperation[] = [
      ...changed.map(([name, row]) => ({ type: "put", key: prefix + name, value: writeRow(row) }) as const),
      ...[...before.keys()].flatMap((name) => (merged.has(name) ? [] : [{ type: "del", key: prefix + name } as const])),
    ];
    await store.batch([...operations]);
  }

  async #prune(tenant: string, day: Day): Promise<void> {
    if (this.#pruned.get(tenant) === day) return;
    const { gte } = rangeOf(`${tenantPrefix(tenant)}usage/`);
    await this.#options.store.clear({ gte, lt: dayPrefix(tenant, addDays(day, 1 - keptDays)) });
    this.#pruned.set(tenant, day);
  }

  #putBack({ tenant, day, rows }: Shelf): void {
    const shelf = this.#shelfOf(tenant, day);
    for (const [name, row] of rows) shelf.rows.set(name, addRows(row, shelf.rows.get(name)));
    this.#fold(tenant, shelf.rows);
  }

  #shelfOf(tenant: string, day: Day): Shelf {
    const prefix = dayPrefix(tenant, day);
    const known = this.#pending.get(prefix);
    if (known !== undefined) return known;
    const shelf: Shelf = { tenant, day, rows: new Map() };
    this.#pending.set(prefix, shelf);
    return shelf;
  }

  #fold(tenant: string, rows: DayRows): void {
    const { maxRows = usualRows, stays } = this.#options;
    foldRows(rows, maxRows, (row) => stays(tenant, row));
  }
}

/** The rows of one day by their names. */
type DayRows = Map<string, UsageRow>;

/** Of what may be kept, the part that is kept when there is more: the next rows then find room. */
const keptShare = 0.9;

/**
 * Where there are more rows than `most`, counts those that used least together, as one named `other`. A row that `stays`
 * is never among them.
 */
function foldRows(rows: DayRows, most: number, stays: (row: UsageRow) => boolean): void {
  if (rows.size <= most) return;
  const foldable = [...rows.values()].filter((row) => row.principal !== other && !stays(row));
  const excess = rows.size - Math.floor(most * keptShare);
  for (const row of foldable.sort((a, b) => weight(a) - weight(b)).slice(0, excess)) {
    const together: UsageRow = { ...row, principal: other, keyId: null, provider: other, model: other };
    rows.delete(rowName(row));
    rows.set(rowName(together), addRows(together, rows.get(rowName(together))));
  }
}

function weight({ requests, input, output }: UsageRow): number {
  return input + output + requests;
}
