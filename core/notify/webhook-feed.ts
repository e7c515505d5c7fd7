import type { Clock, Random } from "../action/id.ts";
import { asciiJson, type JsonObject } from "../action/json.ts";
import type { RetryDelays } from "../action/retry.ts";
import type { NoticeType, WebhookConfig } from "../config/peer-config.ts";
import { limitWarnings, type WarningSink } from "../observe/limited-warning.ts";
import { Courier, maxConnections, Outbox } from "./courier.ts";
import { type DeadLetterPage, DeadLetters } from "./dead-letter.ts";
import { Journal, type NotifyStore, type Operation } from "./journal.ts";
import { type DeathReason, outboxesKey, type Parcel } from "./parcel.ts";
import { Receiver } from "./receiver.ts";

const usualDelays: RetryDelays = { firstMs: 5_000, maxMs: 3_600_000 };

export interface WebhookFeedOptions {
  readonly store: NotifyStore;
  readonly webhooks: readonly WebhookConfig[];
  readonly clock: Clock;
  readonly random: Random;
  readonly newId: () => string;
  readonly observer: DeliveryObserver;
  readonly onWarning: WarningSink;
  /** Other times between attempts than the usual ones. */
  readonly delays?: RetryDelays;
}

interface Line {
  readonly webhook: WebhookConfig;
  readonly outbox: Outbox;
  readonly courier: Courier;
}

/** A place in the store where parcels may lie. */
type Place = readonly [tenant: string, webhook: string];

const maxBody = 16_384;
const maxBacklogBytes = 16_777_216;

/** Tells the configured webhooks of approvals: at least once each, unless they do not take it or a bound is reached. */
export class WebhookFeed implements Notifier {
  readonly #options: WebhookFeedOptions;
  readonly #journal: Journal;
  readonly #warn: WarningSink;
  readonly #lines = new Map<string, Line[]>();
  readonly #deadLetters = new Map<string, DeadLetters>();
  #closed = false;

  private constructor(options: WebhookFeedOptions) {
    this.#options = options;
    this.#warn = limitWarnings(options.onWarning);
    this.#journal = new Journal(options.store, (cause) =>
      this.#warn("webhook outbox not written", { cause: cause instanceof Error ? cause.message : String(cause) }),
    );
  }

  /** Goes on with what an earlier process has not delivered. What was meant for a webhook that is gone is a dead letter. */
  static async open(options: WebhookFeedOptions): Promise<WebhookFeed> {
    const feed = new WebhookFeed(options);
    const places = await feed.#register();
    for (const tenant of new Set(places.map(([tenant]) => tenant))) {
      feed.#deadLetters.set(tenant, await DeadLetters.open(options.store, feed.#journal, tenant));
    }
    for (const place of places) await feed.#openPlace(place);
    return feed;
  }

  tell(notice: Notice): void {
    try {
      for (const line of this.#lines.get(notice.tenant) ?? []) {
        if (line.webhook.events.includes(notice.type)) this.#post(line, notice);
      }
    } catch (error) {
      this.#lose("webhook notice not taken", { type: notice.type, cause: (error as Error).message });
    }
  }

  /** A tenant's dead letters, the latest first. Throws INVALID_PARAMS for a bad cursor. */
  async deadLetters(
    tenant: string,
    { limit, cursor }: { readonly limit: number; readonly cursor?: string },
  ): Promise<DeadLetterPage> {
    return (await this.#deadLetters.get(tenant)?.list(limit, cursor)) ?? { items: [], next: null };
  }

  /** Whether `redeliver` could do something: the letter is the tenant's, and its webhook still configured. */
  async canRedeliver(tenant: string, id: string): Promise<boolean> {
    const letter = await this.#deadLetters.get(tenant)?.read(id);
    return letter !== undefined && this.#lineOf([tenant, letter.webhook]) !== undefined;
  }

  /** Puts a dead letter back into its outbox, with its id and all its attempts before it. False where it cannot. */
  async redeliver(tenant: string, id: string): Promise<boolean> {
    const letters = this.#deadLetters.get(tenant);
    const letter = await letters?.read(id);
    const line = letter === undefined ? undefined : this.#lineOf([tenant, letter.webhook]);
    if (letters === undefined || letter === undefined || line === undefined || this.#closed) return false;
    // Of two who ask at once, one gets it.
    const exhumed = letters.exhume(id);
    if (exhumed === undefined) return false;
    const { webhook: _, reason: __, givenUpAt: ___, ...parcel } = letter;
    this.#add(line, { ...parcel, attempts: 0, notBefore: 0 }, exhumed);
    return true;
  }

  /** Gives up what is in flight, and writes down what is left, for the next start. */
  async close(): Promise<void> {
    this.#closed = true;
    await Promise.all([...this.#lines.values()].flat().map(({ courier }) => courier.close()));
    await this.#journal.close();
  }

  /** Every place there ever was: the store is asked for each, so that nothing lies anywhere unseen. */
  async #register(): Promise<readonly Place[]> {
    const { store, webhooks } = this.#options;
    const known = JSON.parse((await store.get(outboxesKey)) ?? "[]") as readonly Place[];
    const named = (place: Place): string => JSON.stringify(place);
    const names = new Set([...known, ...webhooks.map(({ tenant, name }): Place => [tenant, name])].map(named));
    const places = [...names].map((name) => JSON.parse(name) as Place);
    // Not synced for itself: it comes before any parcel in the store's log, and so it is synced with the first.
    if (places.length > known.length) await store.put(outboxesKey, JSON.stringify(places));
    return places;
  }

  async #openPlace([tenant, name]: Place): Promise<void> {
    const outbox = await Outbox.open(this.#options.store, this.#journal, tenant, name);
    const webhook = this.#options.webhooks.find((each) => each.tenant === tenant && each.name === name);
    if (webhook === undefined) {
      for (const [seq, parcel] of outbox.parcels) this.#bury([tenant, name], outbox, seq, parcel, "removed");
      return;
    }
    const line = { webhook, outbox, courier: this.#hire(webhook, outbox) };
    this.#lines.set(tenant, [...(this.#lines.get(tenant) ?? []), line]);
  }

  #hire(webhook: WebhookConfig, outbox: Outbox): Courier {
    const { clock, random, observer, delays = usualDelays } = this.#options;
    return new Courier({
      outbox,
      receiver: new Receiver(webhook, maxConnections, clock),
      maxAttempts: webhook.maxAttempts,
      delays,
      clock,
      random,
      onDelivered: () => observer.webhookDelivery("delivered"),
      onFailed: ({ type, attempts, status }, fault) => {
        observer.webhookDelivery("failed");
        this.#warn("webhook not told yet", { webhook: webhook.name, type, attempts, status, fault });
      },
      giveUp: (seq, parcel, reason) => this.#bury([webhook.tenant, webhook.name], outbox, seq, parcel, reason),
    });
  }

  #post(line: Line, { type, time, data }: Notice): void {
    const body = asciiJson({ type, timestamp: time, data });
    const fields = { webhook: line.webhook.name, type };
    const fault = this.#faultOf(body);
    if (fault !== undefined) this.#lose(fault, fields);
    else {
      const id = `msg_${this.#options.newId()}`;
      this.#add(line, { id, type, time, body, attempts: 0, status: null, notBefore: 0 });
    }
  }

  #faultOf(body: string): string | undefined {
    if (this.#closed) return "webhook notice came after the stop";
    if (body.length > maxBody) return "webhook notice too long";
    return this.#journal.backlogBytes > maxBacklogBytes ? "webhook outbox waits for the disk" : undefined;
  }

  #add({ webhook, outbox, courier }: Line, parcel: Parcel, also: readonly Operation[] = []): void {
    courier.take(outbox.add(parcel, also));
    for (;;) {
      const seq = outbox.excess(courier.running);
      const oldest = seq === undefined ? undefined : outbox.parcels.get(seq);
      if (seq === undefined || oldest === undefined) return;
      courier.drop(seq);
      this.#bury([webhook.tenant, webhook.name], outbox, seq, oldest, "overflow");
    }
  }

  #bury([tenant, webhook]: Place, outbox: Outbox, seq: number, parcel: Parcel, reason: DeathReason): void {
    const letters = this.#deadLetters.get(tenant);
    if (letters === undefined) throw new TypeError("webhook: expected the dead letters of a registered tenant");
    const givenUpAt = new Date(this.#options.clock()).toISOString();
    const { operations, dropped } = letters.bury({ ...parcel, webhook, reason, givenUpAt });
    outbox.remove(seq, operations);
    this.#options.observer.webhookDelivery("dead");
    this.#warn("webhook notice given up", { webhook, type: parcel.type, reason, status: parcel.status });
    if (dropped > 0) this.#lose("oldest dead letter dropped", { tenant });
  }

  #lose(message: string, fields: object): void {
    this.#options.observer.webhookDelivery("lost");
    this.#warn(message, fields);
  }

  #lineOf([tenant, name]: Place): Line | undefined {
    return this.#lines.get(tenant)?.find(({ webhook }) => webhook.name === name);
  }
}

/** Something that happened to an approval, for people outside to know. It carries no authority, and nothing secret. */
export interface Notice {
  readonly type: NoticeType;
  readonly tenant: string;
  /** When it happened, RFC 3339. */
  readonly time: string;
  /** Sent as it is: the caller leaves out what receivers must not learn, such as arguments. */
  readonly data: JsonObject;
}

/** Tells whoever is configured to hear of it. */
interface Notifier {
  /** Takes note and returns at once. Never throws, waits for nothing, and promises no more than a bounded effort. */
  tell(notice: Notice): void;
}

/**
 * What became of an attempt to tell: `delivered`; `failed`, to be tried again; `dead`, given up and kept among the dead
 * letters; `lost`, kept nowhere, for a bound was reached.
 */
export type DeliveryResult = "delivered" | "failed" | "dead" | "lost";

/** Counts deliveries. */
interface DeliveryObserver {
  webhookDelivery(result: DeliveryResult): void;
}
