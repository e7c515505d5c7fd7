import type { BatchOperation } from "../action/commit-hook.ts";
import type { NoticeType } from "../config/gateway-config.ts";
import { type KeyRange, rangeOf, tenantPrefix } from "../store/key-range.ts";
import type { Store } from "../store/open.ts";
import type { WriteQueue } from "./write-queue.ts";

/** One notice addressed to one webhook. */
export interface WebhookDelivery {
  /** `webhook-id`: the same in every attempt, so that the receiver can drop duplicates. */
  readonly id: string;
  readonly type: NoticeType;
  /** Time of the event, RFC 3339. */
  readonly time: string;
  /** The request body: the same bytes in every attempt. */
  readonly body: string;
  /** Attempts that failed. */
  readonly attempts: number;
  /** Status of the last response; null where there was none. */
  readonly status: number | null;
  /** Earliest time of the next attempt, in milliseconds since 1970. */
  readonly notBefore: number;
}

const maxDeliveries = 10_000;
const maxBytes = 16_777_216;

/** The pending deliveries of one webhook by sequence number: in memory, and in the store once the queue has written them. */
export class Outbox {
  readonly #tenant: string;
  readonly #webhook: string;
  readonly #writes: WriteQueue;
  readonly #deliveries: Map<number, WebhookDelivery>;
  #nextSeq: number;
  #bytes = 0;

  private constructor(tenant: string, webhook: string, writes: WriteQueue, deliveries: Map<number, WebhookDelivery>) {
    this.#tenant = tenant;
    this.#webhook = webhook;
    this.#writes = writes;
    this.#deliveries = deliveries;
    this.#nextSeq = ([...deliveries.keys()].at(-1) ?? -1) + 1;
    for (const { body } of deliveries.values()) this.#bytes += body.length;
  }

  /** Opens an outbox with the deliveries that an earlier process left in it. */
  static async open(store: Store, writes: WriteQueue, tenant: string, webhook: string): Promise<Outbox> {
    const entries = await store.iterator(rangeOf(outboxPrefix(tenant, webhook))).all();
    const deliveries = new Map(entries.map(([key, text]) => [sequenceOf(key), JSON.parse(text) as WebhookDelivery]));
    return new Outbox(tenant, webhook, writes, deliveries);
  }

  /** In the order of their sequence numbers. */
  get deliveries(): ReadonlyMap<number, WebhookDelivery> {
    return this.#deliveries;
  }

  /** Appends a delivery and returns its sequence number. `also`: operations of the same atomic batch. */
  add(delivery: WebhookDelivery, also: readonly BatchOperation[] = []): number {
    const seq = this.#nextSeq++;
    this.#bytes += delivery.body.length;
    this.#put(seq, delivery, also);
    return seq;
  }

  /** Stores the state of a delivery after a failed attempt. */
  replace(seq: number, delivery: WebhookDelivery): void {
    this.#put(seq, delivery, []);
  }

  remove(seq: number, also: readonly BatchOperation[] = []): void {
    this.#bytes -= this.#deliveries.get(seq)?.body.length ?? 0;
    this.#deliveries.delete(seq);
    this.#writes.enqueue([{ type: "del", key: this.#key(seq) }, ...also]);
  }

  /** The oldest delivery that is not in `running`, where the outbox exceeds its bounds. */
  findExcess(running: ReadonlySet<number>): number | undefined {
    if (this.#deliveries.size <= maxDeliveries && this.#bytes <= maxBytes) return undefined;
    for (const seq of this.#deliveries.keys()) if (!running.has(seq)) return seq;
    return undefined;
  }

  #put(seq: number, delivery: WebhookDelivery, also: readonly BatchOperation[]): void {
    this.#deliveries.set(seq, delivery);
    this.#writes.enqueue([{ type: "put", key: this.#key(seq), value: JSON.stringify(delivery) }, ...also]);
  }

  #key(seq: number): string {
    return outboxPrefix(this.#tenant, this.#webhook) + formatSequence(seq);
  }
}

/** The key of the list of all outboxes ever opened, as pairs of tenant and webhook. It belongs to no tenant. */
export const outboxesKey = "webhooks";

const seqDigits = 16;

export function deadLetterKey(tenant: string, seq: number): string {
  return deadLetterPrefix(tenant) + formatSequence(seq);
}

export function deadLetterRange(tenant: string): KeyRange {
  return rangeOf(deadLetterPrefix(tenant));
}

/** The sequence number at the end of a key of an outbox or a dead letter. */
export function sequenceOf(key: string): number {
  return Number(key.slice(-seqDigits));
}

function outboxPrefix(tenant: string, webhook: string): string {
  return `${tenantPrefix(tenant)}webhook-outbox/${encodeURIComponent(webhook)}/`;
}

function deadLetterPrefix(tenant: string): string {
  return `${tenantPrefix(tenant)}webhook-dead-letter/`;
}

function formatSequence(seq: number): string {
  return String(seq).padStart(seqDigits, "0");
}
