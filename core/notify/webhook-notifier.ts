import type { BatchOperation } from "../action/commit-hook.ts";
import type { Clock, Random } from "../action/id.ts";
import { asciiJson, type JsonObject } from "../action/json.ts";
import type { RetryDelays } from "../action/retry.ts";
import type { NoticeType, WebhookConfig } from "../config/gateway-config.ts";
import type { EgressGuard } from "../egress/egress-guard.ts";
import { limitWarnings, type WarningSink } from "../observe/limited-warning.ts";
import type { Store } from "../store/open.ts";
import { type DeadLetterPage, type DeadLetterReason, DeadLetters } from "./dead-letter.ts";
import { DeliveryWorker, maxConnections } from "./delivery-worker.ts";
import { Outbox, outboxesKey, type WebhookDelivery } from "./outbox.ts";
import { Receiver } from "./receiver.ts";
import { WriteQueue } from "./write-queue.ts";

/** A change of an approval, for systems outside. It grants nothing and contains no secret. */
export interface Notice {
  readonly type: NoticeType;
  readonly tenant: string;
  /** Time of the change, RFC 3339. */
  readonly time: string;
  /** Sent as it is: the caller leaves out everything that receivers must not learn, such as arguments. */
  readonly data: JsonObject;
}

/**
 * The result of a delivery: `delivered`; `failed`, to be retried; `dead`, abandoned and kept as a dead letter; `lost`,
 * kept nowhere because a bound was reached.
 */
export type DeliveryResult = "delivered" | "failed" | "dead" | "lost";

interface DeliveryObserver {
  webhookDelivery(result: DeliveryResult): void;
}

export interface WebhookNotifierOptions {
  readonly store: Store;
  readonly webhooks: readonly WebhookConfig[];
  readonly clock: Clock;
  readonly random: Random;
  readonly newId: () => string;
  readonly observer: DeliveryObserver;
  readonly onWarning: WarningSink;
  /** Delays between attempts; from 5 s to 1 h where absent. */
  readonly delays?: RetryDelays;
  readonly egress: EgressGuard;
}

/** A configured webhook with its pending deliveries. */
interface Channel {
  readonly webhook: WebhookConfig;
  readonly outbox: Outbox;
  readonly worker: DeliveryWorker;
}

/** Names an outbox in the store. */
type OutboxName = readonly [tenant: string, webhook: string];

const defaultDelays: RetryDelays = { firstMs: 5_000, maxMs: 3_600_000 };
const maxBody = 16_384;
const maxBacklogBytes = 16_777_216;

/** Delivers notices to the configured webhooks: at least once each, unless the receiver refuses or a bound is reached. */
export class WebhookNotifier {
  readonly #options: WebhookNotifierOptions;
  readonly #writes: WriteQueue;
  readonly #warn: WarningSink;
  readonly #channels = new Map<string, Channel[]>();
  readonly #deadLetters = new Map<string, DeadLetters>();
  #closed = false;

  private constructor(options: WebhookNotifierOptions) {
    this.#options = options;
    this.#warn = limitWarnings(options.onWarning);
    this.#writes = new WriteQueue(options.store, (cause) =>
      this.#warn("webhook_outbox_write_failed", { cause: cause instanceof Error ? cause.message : String(cause) }),
    );
  }

  /** Resumes the deliveries of an earlier process. Those of a webhook that was removed become dead letters. */
  static async open(options: WebhookNotifierOptions): Promise<WebhookNotifier> {
    const notifier = new WebhookNotifier(options);
    const names = await notifier.#registerOutboxes();
    for (const tenant of new Set(names.map(([tenant]) => tenant))) {
      notifier.#deadLetters.set(tenant, await DeadLetters.open(options.store, notifier.#writes, tenant));
    }
    for (const name of names) await notifier.#openOutbox(name);
    return notifier;
  }

  /** Queues a notice for each webhook that wants it, and returns at once. Never throws. */
  publish(notice: Notice): void {
    try {
      for (const channel of this.#channels.get(notice.tenant) ?? []) {
        if (channel.webhook.events.includes(notice.type)) this.#queue(channel, notice);
      }
    } catch (error) {
      this.#drop("webhook_notice_failed", { type: notice.type, cause: (error as Error).message });
    }
  }

  /** Lists the dead letters of a tenant, the latest first. Throws INVALID_PARAMS for a bad cursor. */
  async listDeadLetters(
    tenant: string,
    { limit, cursor }: { readonly limit: number; readonly cursor?: string },
  ): Promise<DeadLetterPage> {
    return (await this.#deadLetters.get(tenant)?.list(limit, cursor)) ?? { items: [], next: null };
  }

  /** Returns whether the letter belongs to the tenant and its webhook is still configured. */
  async canRedeliver(tenant: string, id: string): Promise<boolean> {
    const letter = await this.#deadLetters.get(tenant)?.read(id);
    return letter !== undefined && this.#channelOf([tenant, letter.webhook]) !== undefined;
  }

  /** Returns a dead letter to its outbox with its id and all attempts left. Resolves with false where it cannot. */
  async redeliver(tenant: string, id: string): Promise<boolean> {
    const letters = this.#deadLetters.get(tenant);
    const letter = await letters?.read(id);
    const channel = letter === undefined ? undefined : this.#channelOf([tenant, letter.webhook]);
    if (letters === undefined || letter === undefined || channel === undefined || this.#closed) return false;
    // Of two concurrent calls, one removes it.
    const removal = letters.remove(id);
    if (removal === undefined) return false;
    const { webhook: _, reason: __, givenUpAt: ___, ...delivery } = letter;
    this.#add(channel, { ...delivery, attempts: 0, notBefore: 0 }, removal);
    return true;
  }

  /** Aborts the attempts in flight and writes the pending deliveries for the next start. */
  async close(): Promise<void> {
    this.#closed = true;
    await Promise.all([...this.#channels.values()].flat().map(({ worker }) => worker.close()));
    await this.#writes.close();
  }

  /** Adds the configured outboxes to the list of all that ever existed, so that none is overlooked at a later start. */
  async #registerOutboxes(): Promise<readonly OutboxName[]> {
    const { store, webhooks } = this.#options;
    const known = JSON.parse((await store.get(outboxesKey)) ?? "[]") as readonly OutboxName[];
    const configured = webhooks.map(({ tenant, name }): OutboxName => [tenant, name]);
    const texts = new Set([...known, ...configured].map((name) => JSON.stringify(name)));
    const names = [...texts].map((text) => JSON.parse(text) as OutboxName);
    // Not synced by itself: it precedes every delivery in the log of the store, and is synced with the first.
    if (names.length > known.length) await store.put(outboxesKey, JSON.stringify(names));
    return names;
  }

  async #openOutbox([tenant, name]: OutboxName): Promise<void> {
    const outbox = await Outbox.open(this.#options.store, this.#writes, tenant, name);
    const webhook = this.#options.webhooks.find((each) => each.tenant === tenant && each.name === name);
    if (webhook === undefined) {
      for (const [seq, delivery] of outbox.deliveries) this.#abandon([tenant, name], outbox, seq, delivery, "removed");
      return;
    }
    const channel = { webhook, outbox, worker: this.#startWorker(webhook, outbox) };
    this.#channels.set(tenant, [...(this.#channels.get(tenant) ?? []), channel]);
  }

  #startWorker(webhook: WebhookConfig, outbox: Outbox): DeliveryWorker {
    const { clock, random, observer, egress, delays = defaultDelays } = this.#options;
    return new DeliveryWorker({
      outbox,
      receiver: new Receiver(webhook, maxConnections, clock, egress),
      maxAttempts: webhook.maxAttempts,
      delays,
      clock,
      random,
      onDelivered: () => observer.webhookDelivery("delivered"),
      onFailed: ({ type, attempts, status }, fault) => {
        observer.webhookDelivery("failed");
        this.#warn("webhook_delivery_failed", { webhook: webhook.name, type, attempts, status, fault });
      },
      onAbandoned: (seq, delivery, reason) =>
        this.#abandon([webhook.tenant, webhook.name], outbox, seq, delivery, reason),
    });
  }

  #queue(channel: Channel, { type, time, data }: Notice): void {
    const body = asciiJson({ type, timestamp: time, data });
    const refusal = this.#findRefusal(body);
    if (refusal !== undefined) this.#drop(refusal, { webhook: channel.webhook.name, type });
    else {
      const id = `msg_${this.#options.newId()}`;
      this.#add(channel, { id, type, time, body, attempts: 0, status: null, notBefore: 0 });
    }
  }

  #findRefusal(body: string): string | undefined {
    if (this.#closed) return "webhook_notice_published_after_close";
    if (body.length > maxBody) return "webhook_notice_size_exceeded";
    return this.#writes.backlogBytes > maxBacklogBytes ? "webhook_backlog_exceeded" : undefined;
  }

  #add({ webhook, outbox, worker }: Channel, delivery: WebhookDelivery, also: readonly BatchOperation[] = []): void {
    worker.enqueue(outbox.add(delivery, also));
    for (;;) {
      const seq = outbox.findExcess(worker.running);
      const oldest = seq === undefined ? undefined : outbox.deliveries.get(seq);
      if (seq === undefined || oldest === undefined) return;
      worker.drop(seq);
      this.#abandon([webhook.tenant, webhook.name], outbox, seq, oldest, "overflow");
    }
  }

  #abandon(
    [tenant, webhook]: OutboxName,
    outbox: Outbox,
    seq: number,
    delivery: WebhookDelivery,
    reason: DeadLetterReason,
  ): void {
    const letters = this.#deadLetters.get(tenant);
    if (letters === undefined) throw new TypeError("WebhookNotifier: expected the dead letters of a registered tenant");
    const givenUpAt = new Date(this.#options.clock()).toISOString();
    const { operations, dropped } = letters.add({ ...delivery, webhook, reason, givenUpAt });
    outbox.remove(seq, operations);
    this.#options.observer.webhookDelivery("dead");
    this.#warn("webhook_delivery_abandoned", { webhook, type: delivery.type, reason, status: delivery.status });
    if (dropped > 0) this.#drop("webhook_dead_letter_dropped", { tenant });
  }

  #drop(event: string, fields: object): void {
    this.#options.observer.webhookDelivery("lost");
    this.#warn(event, fields);
  }

  #channelOf([tenant, name]: OutboxName): Channel | undefined {
    return this.#channels.get(tenant)?.find(({ webhook }) => webhook.name === name);
  }
}
