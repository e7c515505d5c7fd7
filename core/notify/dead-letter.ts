import { GatewayError } from "../action/error.ts";
import type { JsonObject } from "../action/json.ts";
import type { Journal, NotifyStore, Operation } from "./journal.ts";
import {
  type DeadLetter,
  type DeathReason,
  deadLetterKey,
  deadLetterRange,
  readDeadLetter,
  sequenceOf,
} from "./parcel.ts";

/** A dead letter as its tenant's operators may see it. */
export interface DeadLetterView {
  /** The `webhook-id` it was sent with. */
  readonly id: string;
  readonly webhook: string;
  readonly type: string;
  readonly time: string;
  readonly given_up_at: string;
  readonly reason: DeathReason;
  readonly attempts: number;
  /** Status of the last answer; null where none came. */
  readonly status: number | null;
  readonly data: JsonObject;
}

export interface DeadLetterPage {
  readonly items: readonly DeadLetterView[];
  readonly next: string | null;
}

const maxLetters = 1_000;

/** Operations of an atomic batch, and how many letters they drop for good. */
interface Burial {
  readonly operations: readonly Operation[];
  readonly dropped: number;
}

/** What a tenant's webhooks were never told: the latest thousand of it. */
export class DeadLetters {
  readonly #store: NotifyStore;
  readonly #journal: Journal;
  readonly #tenant: string;
  /** Turn of each letter by its id, the oldest first. */
  readonly #turns: Map<string, number>;
  #nextSeq: number;

  private constructor(store: NotifyStore, journal: Journal, tenant: string, turns: Map<string, number>) {
    this.#store = store;
    this.#journal = journal;
    this.#tenant = tenant;
    this.#turns = turns;
    this.#nextSeq = ([...turns.values()].at(-1) ?? -1) + 1;
  }

  static async open(store: NotifyStore, journal: Journal, tenant: string): Promise<DeadLetters> {
    const entries = await store.iterator(deadLetterRange(tenant)).all();
    const turns = new Map(entries.map(([key, text]) => [readDeadLetter(text).id, sequenceOf(key)]));
    return new DeadLetters(store, journal, tenant, turns);
  }

  /** Adds a letter; the oldest makes room for it. The caller writes the operations. */
  bury(letter: DeadLetter): Burial {
    const seq = this.#nextSeq++;
    const operations: Operation[] = [{ type: "put", key: this.#key(seq), value: JSON.stringify(letter) }];
    this.#turns.set(letter.id, seq);
    const [oldest] = this.#turns;
    if (this.#turns.size <= maxLetters || oldest === undefined) return { operations, dropped: 0 };
    this.#turns.delete(oldest[0]);
    return { operations: [...operations, { type: "del", key: this.#key(oldest[1]) }], dropped: 1 };
  }

  /** The letter; undefined for one that is not here (any more). */
  async read(id: string): Promise<DeadLetter | undefined> {
    await this.#journal.settled();
    const seq = this.#turns.get(id);
    const text = seq === undefined ? undefined : await this.#store.get(this.#key(seq));
    return text === undefined ? undefined : readDeadLetter(text);
  }

  /** Takes a letter out; undefined where it is not here any more. The caller writes the operations. */
  exhume(id: string): readonly Operation[] | undefined {
    const seq = this.#turns.get(id);
    if (seq === undefined) return undefined;
    this.#turns.delete(id);
    return [{ type: "del", key: this.#key(seq) }];
  }

  /** The latest first. Throws INVALID_PARAMS for a cursor that is not the `next` of an earlier page. */
  async list(limit: number, cursor: string | undefined): Promise<DeadLetterPage> {
    if (cursor !== undefined && !/^\d{1,15}$/.test(cursor)) {
      throw new GatewayError("INVALID_PARAMS", "expected `cursor` to be the `next` of an earlier page");
    }
    await this.#journal.settled();
    const { gte, lt } = deadLetterRange(this.#tenant);
    const end = cursor === undefined ? lt : this.#key(Number(cursor));
    const entries = await this.#store.iterator({ gte, lt: end, reverse: true, limit: limit + 1 }).all();
    const page = entries.slice(0, limit);
    const last = page.at(-1);
    const next = entries.length > limit && last !== undefined ? String(sequenceOf(last[0])) : null;
    return { items: page.map(([, text]) => viewOf(readDeadLetter(text))), next };
  }

  #key(seq: number): string {
    return deadLetterKey(this.#tenant, seq);
  }
}

function viewOf({ id, webhook, type, time, givenUpAt, reason, attempts, status, body }: DeadLetter): DeadLetterView {
  const { data } = JSON.parse(body) as { readonly data: JsonObject };
  return { id, webhook, type, time, given_up_at: givenUpAt, reason, attempts, status, data };
}
