import { Pool } from "undici";
import type { TelemetryTarget } from "../../kernel/telemetry-config.ts";

/** `again`: the same may be taken later. `refused`: it never will. */
export type Delivery = "sent" | "again" | "refused";

export type SenderTarget = Pick<TelemetryTarget, "protocol" | "headers" | "timeoutMs"> & { readonly endpoint: string };

/** What is read of an answer; nothing in it changes what is done. */
const mostAnswerBytes = 65_536;
/** Spans and metrics, one request of each at a time. */
const connections = 2;
/** What the protocol names as worth another attempt. */
const passing: ReadonlySet<number> = new Set([408, 429, 502, 503, 504]);

/** The sockets to one collector. Follows no redirect, and no request outlives its deadline. */
export class OtlpSender {
  readonly #pool: Pool;
  readonly #path: string;
  readonly #query: string;
  readonly #headers: Readonly<Record<string, string>>;
  readonly #timeoutMs: number;
  readonly #onFault: (fault: string) => void;

  /** `onFault` hears why something was not taken: a status, or what is wrong with the connection. */
  constructor({ endpoint, protocol, headers, timeoutMs }: SenderTarget, onFault: (fault: string) => void) {
    const url = new URL(endpoint);
    this.#path = url.pathname.replace(/\/$/, "");
    this.#query = url.search;
    const type = protocol === "http/json" ? "application/json" : "application/x-protobuf";
    this.#headers = { ...headers, "content-type": type };
    this.#timeoutMs = timeoutMs;
    this.#onFault = onFault;
    this.#pool = new Pool(url.origin, { connections, connect: { timeout: timeoutMs } });
  }

  /** Never rejects. */
  async post(path: "/v1/traces" | "/v1/metrics", body: Uint8Array): Promise<Delivery> {
    try {
      const { statusCode, body: answer } = await this.#pool.request({
        path: this.#path + path + this.#query,
        method: "POST",
        headers: this.#headers,
        body,
        signal: AbortSignal.timeout(this.#timeoutMs),
      });
      await answer.dump({ limit: mostAnswerBytes });
      if (statusCode >= 200 && statusCode < 300) return "sent";
      this.#onFault(`status ${statusCode}`);
      return passing.has(statusCode) ? "again" : "refused";
    } catch (cause) {
      this.#onFault(faultName(cause));
      return "again";
    }
  }

  /** Ends what is under way. */
  async close(): Promise<void> {
    await this.#pool.destroy();
  }
}

/** A code such as `ECONNREFUSED`: messages of the network name addresses, and may repeat what was sent. */
function faultName(cause: unknown): string {
  if (!(cause instanceof Error)) return "unknown";
  return "code" in cause && typeof cause.code === "string" ? cause.code : cause.name;
}
