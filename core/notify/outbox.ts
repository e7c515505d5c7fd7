import type { Journal, NotifyStore, Operation } from "./journal.ts";
import { outboxKey, outboxRange, sequenceOf } from "./key-space.ts";
import { type Parcel, readParcel, writeParcel } from "./parcel.ts";

const mostParcels = 10_000;
const mostBytes = 16_777_216;

/** What one webhook has not been told yet, by turn: in memory, and in the store as soon as the journal has written it. */
export class Outbox {
  readonly #tenant: string;
  readonly #webhook: string;
  readonly #journal: Journal;
  readonly #parcels: Map<number, Parcel>;
  #nextSeq: number;
  #bytes = 0;

  private constructor(tenant: string, webhook: string, journal: Journal, parcels: Map<number, Parcel>) {
    this.#tenant = tenant;
    this.#webhook = webhook;
    this.#journal = journal;
    this.#parcels = parcels;
    this.#nextSeq = ([...parcels.keys()].at(-1) ?? -1) + 1;
    for (const { body } of parcels.values()) this.#bytes += body.length;
  }

  /** With what an earlier process has left in it. */
  static async open(store: NotifyStore, journal: Journal, tenant: string, webhook: string): Promise<Outbox> {
    const entries = await store.iterator(outboxRange(tenant, webhook)).all();
    const parcels = new Map(entries.map(([key, text]) => [sequenceOf(key), readParcel(text)]));
    return new Outbox(tenant, webhook, journal, parcels);
  }

  /** By their turns. */
  get parcels(): ReadonlyMap<number, Parcel> {
    return this.#parcels;
  }

  /** Adds a parcel behind all others, and returns its turn. `also`: what must happen in the store together with it. */
  add(parcel: Parcel, also: readonly Operation[] = []): number {
    const seq = this.#nextSeq++;
    this.#bytes += parcel.body.length;
    this.#put(seq, parcel, also);
    return seq;
  }

  /** Notes an attempt. */
  replace(seq: number, parcel: Parcel): void {
    this.#put(seq, parcel, []);
  }

  remove(seq: number, also: readonly Operation[] = []): void {
    this.#bytes -= this.#parcels.get(seq)?.body.length ?? 0;
    this.#parcels.delete(seq);
    this.#journal.write([{ type: "del", key: this.#key(seq) }, ...also]);
  }

  /** The turn of the oldest parcel where there is one too many; one that is `spared` stays. */
  excess(spared: ReadonlySet<number>): number | undefined {
    if (this.#parcels.size <= mostParcels && this.#bytes <= mostBytes) return undefined;
    for (const seq of this.#parcels.keys()) if (!spared.has(seq)) return seq;
    return undefined;
  }

  #put(seq: number, parcel: Parcel, also: readonly Operation[]): void {
    this.#parcels.set(seq, parcel);
    this.#journal.write([{ type: "put", key: this.#key(seq), value: writeParcel(parcel) }, ...also]);
  }

  #key(seq: number): string {
    return outboxKey(this.#tenant, this.#webhook, seq);
  }
}
