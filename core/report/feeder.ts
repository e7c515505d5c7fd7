import { setTimeout as sleep } from "node:timers/promises";
import type { Clock } from "../action/id.ts";
import type { ChainStatus } from "../evidence/chain/chain-table.ts";
import { type EvidenceStore, recordKey, recordRange } from "../evidence/record/key-space.ts";
import type { EvidenceRecord } from "../evidence/record/record.ts";
import { StoreView } from "../evidence/record/store-view.ts";
import { readFirstKept } from "../evidence/tree/pruned-prefix.ts";
import { backgroundPace, Pace } from "../store/pace.ts";
import { describeDatabaseFailure } from "../store/postgresql.ts";
import { addDays, dayOf, type UsageRow } from "../usage/usage-row.ts";
import type { FedChain, FeedPosition, ReportDatabase } from "./database.ts";

interface ReportFeederOptions {
  readonly database: ReportDatabase;
  readonly store: EvidenceStore;
  readonly status: () => readonly ChainStatus[];
  /** The usage of a tenant from one day to another, both included, by day; everything counted so far. */
  readonly usage: (tenant: string, from: string, to: string) => AsyncIterable<UsageRow>;
  readonly clock: Clock;
  readonly elapsedMs: () => number;
  /** Called with the number of records that the database does not have yet. */
  readonly onBacklog: (records: number) => void;
  readonly onWarning: (message: string, fields: object) => void;
  readonly onResumed: () => void;
}

/** Records of a statement at most, and about how many characters. */
const batchRecords = 256;
const batchLength = 512 * 1_024;
/** Records read at once. */
const readAtOnce = 32;

const idleMs = 1_000;
const maxRetryMs = 15_000;
const usageMs = 10_000;
/** As long as the store keeps usage. */
const usageDays = 400;

/**
 * Copies the records of every chain and the usage of every tenant to the report database, and resumes where the database says
 * that it is. The store is the truth: nothing waits for the database, and what it missed it gets later. Pruned records stay in
 * the database, and are passed over where it does not have them.
 */
export class ReportFeeder {
  readonly #options: ReportFeederOptions;
  readonly #stop = new AbortController();
  /** By chain, as this process knows that the database has them. Emptied when the database fails. */
  readonly #positions = new Map<string, FeedPosition>();
  /** By tenant, the day from which on usage may have changed. */
  readonly #usageFrom = new Map<string, string>();
  /** By tenant and day, the rows that the database has. */
  readonly #usageFed = new Map<string, string>();
  readonly #pace: Pace;
  #usageAtMs = Number.NEGATIVE_INFINITY;
  #hasTables = false;
  #failures = 0;
  #running: Promise<void> = Promise.resolve();

  constructor(options: ReportFeederOptions) {
    this.#options = options;
    this.#pace = new Pace({ ...backgroundPace, elapsedMs: options.elapsedMs, signal: this.#stop.signal });
  }

  /** Feeds until it is closed. Nothing connects before. */
  start(): void {
    this.#running = this.#run();
  }

  /** Ends at once: what is under way is fed again after the next start, where it has to be. */
  async close(): Promise<void> {
    this.#stop.abort();
    await this.#options.database.close();
    await this.#running;
  }

  async #run(): Promise<void> {
    const { signal } = this.#stop;
    while (!signal.aborted) {
      await this.#pass().catch((cause: unknown) => this.#pause(cause));
      const waitMs = this.#failures === 0 ? idleMs : Math.min(idleMs * 2 ** (this.#failures - 1), maxRetryMs);
      await sleep(waitMs, undefined, { signal, ref: false }).catch(() => undefined);
    }
  }

  /** Feeds everything that is there. */
  async #pass(): Promise<void> {
    const { database, status, elapsedMs } = this.#options;
    this.#reportBacklog();
    if (!this.#hasTables) await database.createTables();
    this.#hasTables = true;
    const ready = status().filter(({ state, chain }) => state === "ready" && chain !== "");
    for (const chain of ready) await this.#feedChain(chain);
    if (elapsedMs() - this.#usageAtMs >= usageMs) {
      for (const { tenant } of ready) await this.#feedUsage(tenant);
      this.#usageAtMs = elapsedMs();
    }
    this.#resume();
  }

  #resume(): void {
    if (this.#failures === 0) return;
    this.#failures = 0;
    this.#options.onResumed();
  }

  /** Forgets what the database had, and warns once: the last statement may have been committed or not. */
  #pause(cause: unknown): void {
    if (this.#stop.signal.aborted) return;
    this.#positions.clear();
    this.#usageFrom.clear();
    this.#usageFed.clear();
    this.#usageAtMs = Number.NEGATIVE_INFINITY;
    this.#hasTables = false;
    if (this.#failures++ === 0) this.#options.onWarning("reports_paused", { cause: describeDatabaseFailure(cause) });
  }

  #reportBacklog(): void {
    const ready = this.#options.status().filter(({ state }) => state === "ready");
    const behind = ready.map(({ chain, seq }) => seq - (this.#positions.get(chain)?.seq ?? -1));
    this.#options.onBacklog(behind.reduce((sum, records) => sum + Math.max(0, records), 0));
  }

  async #feedChain(status: ChainStatus): Promise<void> {
    const { database } = this.#options;
    let position = this.#positions.get(status.chain) ?? (await this.#findPosition(status));
    while (position.seq < status.seq) {
      const texts = await this.#readBehind(status.tenant, position.seq);
      const last = texts.at(-1);
      // What is sealed may wait for the disk.
      if (last === undefined) return;
      const { seq, id } = JSON.parse(last) as EvidenceRecord;
      const to = { seq, record: id };
      const isFed = await database.insertRecords(status, position, to, texts);
      position = isFed ? to : await this.#findPosition(status);
      this.#positions.set(status.chain, position);
      this.#reportBacklog();
      await this.#pace.rest();
    }
  }

  /** Reads the texts of some records behind one. */
  async #readBehind(tenant: string, seq: number): Promise<readonly string[]> {
    const range = { ...recordRange(tenant), gte: recordKey(tenant, seq + 1), limit: batchRecords };
    await using reader = new StoreView(this.#options.store).read(range);
    const texts: string[] = [];
    for (let length = 0; length < batchLength; ) {
      const entries = await reader.nextv(readAtOnce);
      if (entries.length === 0) break;
      for (const [, text] of entries) {
        texts.push(text);
        length += text.length;
      }
      await this.#pace.rest();
    }
    return texts;
  }

  /**
   * Asks the database where it is. A store that was put back as it was before may go on otherwise than the records that the
   * database has: then these go, as far as the store can give them again.
   */
  async #findPosition(chain: FedChain & { readonly seq: number }): Promise<FeedPosition> {
    const { database, store, onWarning } = this.#options;
    const found = await database.readPosition(chain);
    const position = (await this.#isInStore(chain, found)) ? found : undefined;
    if (position !== undefined) {
      this.#positions.set(chain.chain, position);
      return position;
    }
    onWarning("reports_began_again", { tenant: chain.tenant, seq: found.seq });
    await database.deleteRecords(chain, await readFirstKept(store, chain.tenant));
    return this.#findPosition(chain);
  }

  async #isInStore({ tenant }: FedChain, { seq, record }: FeedPosition): Promise<boolean> {
    if (record === "") return true;
    const { store } = this.#options;
    const text = await store.get(recordKey(tenant, seq));
    if (text !== undefined) return (JSON.parse(text) as EvidenceRecord).id === record;
    return seq < (await readFirstKept(store, tenant));
  }

  async #feedUsage(tenant: string): Promise<void> {
    const { usage, clock } = this.#options;
    const today = dayOf(clock());
    const from = this.#usageFrom.get(tenant) ?? (await this.#findUsageDay(tenant, today));
    let rows: UsageRow[] = [];
    for await (const row of usage(tenant, from, today)) {
      if (rows[0] !== undefined && rows[0].day !== row.day) {
        await this.#feedDay(tenant, rows);
        rows = [];
      }
      rows.push(row);
    }
    await this.#feedDay(tenant, rows);
    this.#usageFrom.set(tenant, addDays(today, -1));
    await this.#pace.rest();
  }

  /** A day before the last that the database has is over, but for one that ended while the gateway stopped. */
  async #findUsageDay(tenant: string, today: string): Promise<string> {
    const last = await this.#options.database.readLastUsageDay(tenant);
    const from = addDays(last ?? addDays(today, 1 - usageDays), -1);
    const yesterday = addDays(today, -1);
    return from < yesterday ? from : yesterday;
  }

  async #feedDay(tenant: string, rows: readonly UsageRow[]): Promise<void> {
    const day = rows[0]?.day;
    if (day === undefined) return;
    const [name, text] = [`${tenant}/${day}`, JSON.stringify(rows)];
    if (this.#usageFed.get(name) === text) return;
    await this.#options.database.replaceUsage(tenant, day, rows);
    this.#usageFed.set(name, text);
    this.#usageFed.delete(`${tenant}/${addDays(day, -2)}`);
  }
}
