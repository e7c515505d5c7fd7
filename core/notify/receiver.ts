import { createHmac } from "node:crypto";
import { type Dispatcher, Pool } from "undici";
import type { Clock } from "../action/id.ts";
import { readRetryAfter } from "../action/retry.ts";
import { readWebhookSecret, type WebhookConfig } from "../config/gateway-config.ts";
import type { EgressGuard } from "../egress/egress-guard.ts";
import type { WebhookDelivery } from "./outbox.ts";

/** The result of one attempt. Nothing else of a response is read or kept. */
export interface AttemptResult {
  /** `refused`: the same request would be refused again. */
  readonly outcome: "delivered" | "refused" | "failed";
  /** Null where no response arrived in time. */
  readonly status: number | null;
  /** The reason for a missing response: a code of the system or of TLS. Null where one arrived. */
  readonly fault: string | null;
  /** The delay that the receiver asks for; 0 where it asks for none. */
  readonly retryAfterMs: number;
}

/** A response body is read up to this size; then its connection is closed. */
const maxResponseBytes = 65_536;
const plainHeaders = { "content-type": "application/json", "user-agent": "agent-governance-gateway" };
const retryableClientErrors: ReadonlySet<number> = new Set([408, 425, 429]);

/** The HTTP client of one webhook. Its secrets do not leave this class. */
export class Receiver {
  readonly #keys: readonly Buffer[];
  readonly #pool: Pool;
  readonly #path: string;
  readonly #timeoutMs: number;
  readonly #clock: Clock;
  readonly #running = new Set<AbortController>();

  /** Throws TypeError for a malformed secret, which the configuration refuses before. */
  constructor({ url, secrets, timeoutMs }: WebhookConfig, connections: number, clock: Clock, egress: EgressGuard) {
    const target = new URL(url);
    this.#keys = secrets.map(keyOf);
    this.#path = target.pathname + target.search;
    this.#timeoutMs = timeoutMs;
    this.#clock = clock;
    this.#pool = new Pool(target.origin, {
      connections,
      pipelining: 1,
      connect: egress.connector(target, timeoutMs),
    });
  }

  /**
   * Posts a delivery once, within the timeout of the webhook. Never rejects. Follows no redirect: a notice is meant for
   * this address alone.
   */
  async post(delivery: WebhookDelivery): Promise<AttemptResult> {
    const attempt = new AbortController();
    const timer = setTimeout(() => attempt.abort(), this.#timeoutMs);
    this.#running.add(attempt);
    try {
      return await this.#exchange(delivery, attempt.signal);
    } catch (error) {
      const fault = attempt.signal.aborted ? "timeout" : codeOf(error);
      return { outcome: "failed", status: null, fault, retryAfterMs: 0 };
    } finally {
      clearTimeout(timer);
      this.#running.delete(attempt);
    }
  }

  /** Aborts the attempts in flight. */
  async close(): Promise<void> {
    for (const attempt of this.#running) attempt.abort();
    await this.#pool.destroy();
  }

  async #exchange(delivery: WebhookDelivery, signal: AbortSignal): Promise<AttemptResult> {
    const { statusCode, headers, body } = await this.#pool.request({
      method: "POST",
      path: this.#path,
      headers: { ...plainHeaders, ...signedHeaders(delivery, this.#keys, this.#clock()) },
      body: delivery.body,
      signal,
    });
    await discard(body, signal);
    const retryAfter = headers["retry-after"];
    return {
      outcome: outcomeOf(statusCode),
      status: statusCode,
      fault: null,
      retryAfterMs: typeof retryAfter === "string" ? readRetryAfter(retryAfter, this.#clock()) : 0,
    };
  }
}

/** Drops the body: a response that never ends must neither delay the next attempt nor fill the memory. */
async function discard(body: Dispatcher.ResponseData["body"], signal: AbortSignal): Promise<void> {
  await body.dump({ limit: maxResponseBytes, signal }).catch(() => undefined);
}

function outcomeOf(status: number): AttemptResult["outcome"] {
  if (status >= 200 && status < 300) return "delivered";
  return status >= 400 && status < 500 && !retryableClientErrors.has(status) ? "refused" : "failed";
}

/** Returns the code, never the message: that may quote what the receiver sent. */
function codeOf(error: unknown): string {
  const code = error instanceof Error && "code" in error ? String(error.code) : "";
  return /^[A-Z0-9_]{1,64}$/.test(code) ? code : "unreachable";
}

function keyOf(secret: string): Buffer {
  const key = readWebhookSecret(secret);
  if (key === undefined) throw new TypeError("Receiver: expected a secret that the configuration has checked");
  return key;
}

/**
 * The headers of Standard Webhooks: they prove to a holder of one of the keys that the body comes from this gateway, and
 * when. The time is that of this attempt, because receivers refuse old ones.
 */
function signedHeaders({ id, body }: WebhookDelivery, keys: readonly Buffer[], nowMs: number): Record<string, string> {
  const timestamp = String(Math.floor(nowMs / 1000));
  const signatures = keys.map((key) => {
    const mac = createHmac("sha256", key).update(`${id}.${timestamp}.${body}`).digest("base64");
    return `v1,${mac}`;
  });
  return { "webhook-id": id, "webhook-timestamp": timestamp, "webhook-signature": signatures.join(" ") };
}
