import { createHmac } from "node:crypto";
import { type Dispatcher, Pool } from "undici";
import type { Clock } from "../action/id.ts";
import { readRetryAfter } from "../action/retry.ts";
import { readWebhookSecret, type WebhookConfig } from "../config/peer-config.ts";
import type { Parcel } from "./parcel.ts";

/** What one attempt came to. Nothing else of an answer is believed, or kept. */
export interface Answer {
  /** `refused`: the same request would be refused again. */
  readonly verdict: "delivered" | "refused" | "failed";
  /** Null where none came in time. */
  readonly status: number | null;
  /** Why none came: a code of the system's or of TLS. Null where one came. */
  readonly fault: string | null;
  /** What the receiver asks us to wait; 0 where it asks for nothing. */
  readonly retryAfterMs: number;
}

/** Beyond this an answer's body is not read to its end: its connection is closed. */
const maxAnswerBytes = 65_536;
const plainHeaders = { "content-type": "application/json", "user-agent": "agent-governance-gateway" };
const passingClientErrors: ReadonlySet<number> = new Set([408, 425, 429]);

/** The far end of one webhook. Its secrets stay in here. */
export class Receiver {
  readonly #keys: readonly Buffer[];
  readonly #pool: Pool;
  readonly #path: string;
  readonly #timeoutMs: number;
  readonly #clock: Clock;
  readonly #running = new Set<AbortController>();

  /** Throws TypeError for a secret that is none: configuration has checked them. */
  constructor({ url, secrets, timeoutMs }: WebhookConfig, connections: number, clock: Clock) {
    const { origin, pathname, search } = new URL(url);
    this.#keys = secrets.map(keyOf);
    this.#path = pathname + search;
    this.#timeoutMs = timeoutMs;
    this.#clock = clock;
    this.#pool = new Pool(origin, { connections, pipelining: 1, connect: { timeout: timeoutMs } });
  }

  /**
   * Posts a parcel once, within the webhook's time. Never rejects. Follows no redirect: what is told is meant for this
   * address alone.
   */
  async post(parcel: Parcel): Promise<Answer> {
    const attempt = new AbortController();
    const timer = setTimeout(() => attempt.abort(), this.#timeoutMs);
    this.#running.add(attempt);
    try {
      return await this.#exchange(parcel, attempt.signal);
    } catch (error) {
      const fault = attempt.signal.aborted ? "timeout" : codeOf(error);
      return { verdict: "failed", status: null, fault, retryAfterMs: 0 };
    } finally {
      clearTimeout(timer);
      this.#running.delete(attempt);
    }
  }

  /** Gives up what is in flight. */
  async close(): Promise<void> {
    for (const attempt of this.#running) attempt.abort();
    await this.#pool.destroy();
  }

  async #exchange(parcel: Parcel, signal: AbortSignal): Promise<Answer> {
    const { statusCode, headers, body } = await this.#pool.request({
      method: "POST",
      path: this.#path,
      headers: { ...plainHeaders, ...signedHeaders(parcel, this.#keys, this.#clock()) },
      body: parcel.body,
      signal,
    });
    await discard(body, signal);
    const asked = headers["retry-after"];
    return {
      verdict: verdictOf(statusCode),
      status: statusCode,
      fault: null,
      retryAfterMs: typeof asked === "string" ? readRetryAfter(asked, this.#clock()) : 0,
    };
  }
}

/** The status has said all; an answer that does not end must not hold the next attempt up, nor fill the memory. */
async function discard(body: Dispatcher.ResponseData["body"], signal: AbortSignal): Promise<void> {
  await body.dump({ limit: maxAnswerBytes, signal }).catch(() => undefined);
}

function verdictOf(status: number): Answer["verdict"] {
  if (status >= 200 && status < 300) return "delivered";
  return status >= 400 && status < 500 && !passingClientErrors.has(status) ? "refused" : "failed";
}

/** Never the message: it may quote what the receiver sent. */
function codeOf(error: unknown): string {
  const code = error instanceof Error && "code" in error ? String(error.code) : "";
  return /^[A-Z0-9_]{1,64}$/.test(code) ? code : "unreachable";
}

function keyOf(secret: string): Buffer {
  const key = readWebhookSecret(secret);
  if (key === undefined) throw new TypeError("webhook: expected a secret that the configuration has checked");
  return key;
}

/**
 * The headers that Standard Webhooks asks for: who holds one of the keys knows that the body is ours, and from when. The
 * time is that of this attempt, because receivers refuse old ones.
 */
function signedHeaders({ id, body }: Parcel, keys: readonly Buffer[], nowMs: number): Record<string, string> {
  const timestamp = String(Math.floor(nowMs / 1000));
  const signatures = keys.map((key) => {
    const mac = createHmac("sha256", key).update(`${id}.${timestamp}.${body}`).digest("base64");
    return `v1,${mac}`;
  });
  return { "webhook-id": id, "webhook-timestamp": timestamp, "webhook-signature": signatures.join(" ") };
}
