import type { JsonObject } from "../kernel/json.ts";
import type { NoticeType } from "../kernel/webhook-config.ts";

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
export interface Notifier {
  /** Takes note and returns at once. Never throws, waits for nothing, and promises no more than a bounded effort. */
  tell(notice: Notice): void;
}

/**
 * What became of an attempt to tell: `delivered`; `failed`, to be tried again; `dead`, given up and kept among the dead
 * letters; `lost`, kept nowhere, for a bound was reached.
 */
export type DeliveryResult = "delivered" | "failed" | "dead" | "lost";

/** Counts deliveries. */
export interface DeliveryObserver {
  webhookDelivery(result: DeliveryResult): void;
}
