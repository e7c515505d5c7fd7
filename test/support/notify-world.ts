import { randomBytes } from "node:crypto";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { uuidV7 } from "../../core/action/id.ts";
import type { WebhookConfig } from "../../core/config/gateway-config.ts";
import { noticeTypes } from "../../core/config/policy-schema.ts";
import type { DeadLetterView } from "../../core/notify/dead-letter.ts";
import {
  type DeliveryResult,
  type Notice,
  WebhookNotifier,
  type WebhookNotifierOptions,
} from "../../core/notify/webhook-notifier.ts";
import { openStore, type Store } from "../../core/store/open.ts";
import { egress } from "./egress.ts";
import { until } from "./webhook-receiver.ts";

export const webhookSecret: string = `whsec_${randomBytes(32).toString("base64")}`;

/** Attempts 20 to 40 ms apart, then up to 80 ms. */
export const quickDelays = { firstMs: 40, maxMs: 80 } as const;

export function makeWebhook(url: string, over: Partial<WebhookConfig> = {}): WebhookConfig {
  return {
    name: "ops",
    tenant: "acme",
    url,
    secrets: [webhookSecret],
    events: noticeTypes,
    timeoutMs: 5_000,
    maxAttempts: 3,
    ...over,
  };
}

export function makeNotice(number: number, over: Partial<Notice> = {}): Notice {
  return { type: "approval.pending", tenant: "acme", time: "2026-05-01T10:00:00.000Z", data: { number }, ...over };
}

/** A notifier on real LevelDB in its own folder; reopened as often as a test likes. */
export class NotifyWorld {
  readonly dir: string;
  readonly warnings: { readonly message: string; readonly fields: object }[] = [];
  readonly results: DeliveryResult[] = [];
  nowMs: () => number = Date.now;
  #notifier: WebhookNotifier | null = null;
  #store: Store | null = null;

  private constructor(dir: string) {
    this.dir = dir;
  }

  static async create(): Promise<NotifyWorld> {
    return new NotifyWorld(await mkdtemp(join(tmpdir(), "notify-")));
  }

  /** On a data folder that is there already; the caller's to remove. */
  static at(dir: string): NotifyWorld {
    return new NotifyWorld(dir);
  }

  get notifier(): WebhookNotifier {
    if (this.#notifier === null) throw new Error("the world has no notifier open");
    return this.#notifier;
  }

  get store(): Store {
    if (this.#store === null) throw new Error("the world has no store open");
    return this.#store;
  }

  async open(webhooks: readonly WebhookConfig[], over: Partial<WebhookNotifierOptions> = {}): Promise<WebhookNotifier> {
    this.#store ??= await openStore({ dir: this.dir, enabled: true });
    this.#notifier = await WebhookNotifier.open({
      store: this.#store,
      webhooks,
      egress,
      clock: () => this.nowMs(),
      random: randomBytes,
      newId: () => uuidV7(Date.now(), randomBytes(10)),
      observer: { webhookDelivery: (result) => this.results.push(result) },
      onWarning: (message, fields) => this.warnings.push({ message, fields }),
      delays: quickDelays,
      ...over,
    });
    return this.#notifier;
  }

  publish(count: number, over: Partial<Notice> = {}): void {
    for (let number = 0; number < count; number++) this.notifier.publish(makeNotice(number, over));
  }

  count(wanted: DeliveryResult): number {
    return this.results.filter((result) => result === wanted).length;
  }

  /** Resolves once `count` deliveries have ended so. */
  async became(wanted: DeliveryResult, count: number): Promise<void> {
    await until(() => this.count(wanted) >= count, `${count} ${wanted}, got ${this.count(wanted)}`);
  }

  async letters(tenant = "acme"): Promise<readonly DeadLetterView[]> {
    return (await this.notifier.listDeadLetters(tenant, { limit: 500 })).items;
  }

  /** Ends this process's part; the folder stays. */
  async close(): Promise<void> {
    await this.#notifier?.close();
    await this.#store?.close();
    this.#notifier = null;
    this.#store = null;
  }

  async remove(): Promise<void> {
    await this.close();
    await rm(this.dir, { recursive: true, force: true });
  }
}
