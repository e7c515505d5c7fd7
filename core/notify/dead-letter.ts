import type { BatchOperation } from "../action/commit-hook.ts";
import { GatewayError } from "../action/error.ts";
import type { JsonObject } from "../action/json.ts";
import type { Store } from "../store/open.ts";
import { deadLetterKey, deadLetterRange, sequenceOf, type WebhookDelivery } from "./outbox.ts";
import type { WriteQueue } from "./write-queue.ts";

/** The reason for abandoning a delivery: refused by the receiver, out of attempts, no room, or its webhook was removed. */
export type DeadLetterReason = "refused" | "exhausted" | "overflow" | "removed";

/** A delivery that was abandoned, as the store keeps it. */
interface DeadLetter extends WebhookDelivery {
  readonly webhook: string;
  readonly reason: DeadLetterReason;
  /** Time of abandonment, RFC 3339. */
  readonly givenUpAt: string;
}

/** A dead letter as the operators of its tenant see it. */
export interface DeadLetterView {
  /** The `webhook-id` it was sent with. */
  readonly id: string;
  readonly webhook: string;
  readonly type: string;
  readonly time: string;
  readonly given_up_at: string;
  readonly reason: DeadLetterReason;
  readonly attempts: number;
  /** Status of the last response; null where there was none. */
  readonly status: number | null;
  readonly data: JsonObject;
}

export interface DeadLetterPage {
  readonly items: readonly DeadLetterView[];
  readonly next: string | null;
}

const maxLetters = 1_000;

/** Operations of an atomic batch, and the number of letters they drop for good. */
interface AddedLetter {
  readonly operations: readonly BatchOperation[];
  readonly dropped: number;
}

/** The abandoned deliveries of one tenant: the latest 1,000. */
export class DeadLetters {
  readonly #store: Store;
  readonly #writes: WriteQueue;
  readonly #tenant: string;
  /** Sequence number of each letter by its id, the oldest first. */
  readonly #seqById: Map<string, number>;
  #nextSeq: number;

  private constructor(store: Store, writes: WriteQueue, tenant: string, seqById: Map<string, number>) {
    this.#store = store;
    this.#writes = writes;
    this.#tenant = tenant;
    this.#seqById = seqById;
    this.#nextSeq = ([...seqById.values()].at(-1) ?? -1) + 1;
  }

  static async open(store: Store, writes: WriteQueue, tenant: string): Promise<DeadLetters> {
    const entries = await store.iterator(deadLetterRange(tenant)).all();
    const seqById = new Map(entries.map(([key, text]) => [parseLetter(text).id, sequenceOf(key)]));
    return new DeadLetters(store, writes, tenant, seqById);
  }

  /** Adds a letter, dropping the oldest where there are too many. The caller writes the operations. */
  add(letter: DeadLetter): AddedLetter {
    const seq = this.#nextSeq++;
    const operations: BatchOperation[] = [{ type: "put", key: this.#key(seq), value: JSON.stringify(letter) }];
    this.#seqById.set(letter.id, seq);
    const [oldest] = this.#seqById;
    if (this.#seqById.size <= maxLetters || oldest === undefined) return { operations, dropped: 0 };
    this.#seqById.delete(oldest[0]);
    return { operations: [...operations, { type: "del", key: this.#key(oldest[1]) }], dropped: 1 };
  }

  /** Reads a letter; undefined where there is none of this id. */
  async read(id: string): Promise<DeadLetter | undefined> {
    await this.#writes.flushed();
    const seq = this.#seqById.get(id);
    const text = seq === undefined ? undefined : await this.#store.get(this.#key(seq));
    return text === undefined ? undefined : parseLetter(text);
  }

  /** Removes a letter; undefined where there is none of this id. The caller writes the operations. */
  remove(id: string): readonly BatchOperation[] | undefined {
    const seq = this.#seqById.get(id);
    if (seq === undefined) return undefined;
    this.#seqById.delete(id);
    return [{ type: "del", key: this.#key(seq) }];
  }

  /** Lists letters, the latest first. Throws INVALID_PARAMS for a cursor that is not the `next` of an earlier page. */
  async list(limit: number, cursor: string | undefined): Promise<DeadLetterPage> {
    if (cursor !== undefined && !/^\d{1,15}$/.test(cursor)) {
      throw new GatewayError("INVALID_PARAMS", "expected `cursor` to be the `next` of an earlier page");
    }
    await this.#writes.flushed();
    const { gte, lt } = deadLetterRange(this.#tenant);
    const end = cursor === undefined ? lt : this.#key(Number(cursor));
    const entries = await this.#store.iterator({ gte, lt: end, reverse: true, limit: limit + 1 }).all();
    const page = entries.slice(0, limit);
    const last = page.at(-1);
    const next = entries.length > limit && last !== undefined ? String(sequenceOf(last[0])) : null;
    return { items: page.map(([, text]) => viewLetter(parseLetter(text))), next };
  }

  #key(seq: number): string {
    return deadLetterKey(this.#tenant, seq);
  }
}

/** Not validated: the gateway alone writes these entries. */
function parseLetter(text: string): DeadLetter {
  return JSON.parse(text) as DeadLetter;
}

function viewLetter({
  id,
  webhook,
  type,
  time,
  givenUpAt,
  reason,
  attempts,
  status,
  body,
}: DeadLetter): DeadLetterView {
  const { data } = JSON.parse(body) as { readonly data: JsonObject };
  return { id, webhook, type, time, given_up_at: givenUpAt, reason, attempts, status, data };
}
