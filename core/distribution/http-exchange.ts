import type { IncomingHttpHeaders } from "node:http";
import { Client } from "undici";
import { GatewayError } from "../action/error.ts";
import { readBody } from "../egress/body.ts";
import type { HostSource } from "../egress/destination.ts";
import { EgressError, type EgressGuard } from "../egress/egress-guard.ts";

export interface HttpQuestion {
  readonly url: URL;
  readonly method: "GET" | "HEAD" | "POST" | "PUT";
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: Buffer;
  /** Bytes of a body that is read; a longer one of a success is refused, of a failure cut. */
  readonly maxBytes: number;
}

export interface HttpReply {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly body: Buffer;
}

/** Time without a byte after which a peer counts as gone. */
const idleTimeoutMs = 30_000;
/** Time for all requests of one pull or push together. */
const transferTimeoutMs = 300_000;

/** The errors of an exchange, as its user names them. */
export interface ExchangeFaults {
  /** No whole response came; `text` names the host and the reason. */
  unreachable(text: string, cause?: unknown): GatewayError;
  /** A response of success has more bytes than were asked for. */
  tooLarge(url: URL, maxBytes: number): GatewayError;
}

/**
 * Sends the requests of one pull, push or update: follows no redirect, accepts no encoding, and ends 5 minutes after it
 * was made. Hosts other than the user's own must be public. Throws what `faults` makes, and nothing else.
 */
export class HttpExchange {
  readonly #origin: string;
  readonly #host: string;
  readonly #egress: EgressGuard;
  readonly #faults: ExchangeFaults;
  readonly #own: Client;
  readonly #signal = AbortSignal.timeout(transferTimeoutMs);

  /** `origin`: of the host that the user names; its connections are kept. */
  constructor(origin: URL, egress: EgressGuard, faults: ExchangeFaults) {
    this.#origin = origin.origin;
    this.#host = origin.hostname;
    this.#egress = egress;
    this.#faults = faults;
    this.#own = this.#connect(origin);
  }

  async send({ url, method, headers, body, maxBytes }: HttpQuestion): Promise<HttpReply> {
    const isOwn = url.origin === this.#origin;
    const client = isOwn ? this.#own : this.#connect(url);
    try {
      const path = url.pathname + url.search;
      const options = { path, method, headers, body: body ?? null, signal: this.#signal };
      const { statusCode, headers: found, body: stream } = await client.request(options);
      const bytes = await readBody(stream, maxBytes);
      // Of a failure nothing but its status is needed where its body is long.
      if (bytes === undefined && statusCode < 300) throw this.#faults.tooLarge(url, maxBytes);
      return { status: statusCode, headers: found, body: bytes ?? Buffer.alloc(0) };
    } catch (cause) {
      throw cause instanceof GatewayError ? cause : this.#connectionFault(url, cause);
    } finally {
      if (!isOwn) await client.destroy();
    }
  }

  async close(): Promise<void> {
    await this.#own.destroy();
  }

  #connect(url: URL): Client {
    const { egress, source } = { egress: this.#egress, source: this.#sourceOf(url) };
    const connect = egress.connector(url, idleTimeoutMs, source);
    return new Client(url.origin, { connect, headersTimeout: idleTimeoutMs, bodyTimeout: idleTimeoutMs });
  }

  #connectionFault({ host }: URL, cause: unknown): GatewayError {
    const isLate = this.#signal.aborted;
    const reason = isLate ? `expected an end within ${transferTimeoutMs / 1000} s` : reasonOf(cause);
    return this.#faults.unreachable(`\`${host}\`: ${reason}`, cause);
  }

  #sourceOf(url: URL): HostSource {
    return url.hostname === this.#host ? "configuration" : "answer";
  }
}

function reasonOf(cause: unknown): string {
  if (cause instanceof EgressError) return cause.message;
  const { code, name } = cause as NodeJS.ErrnoException;
  return `the connection failed (${code ?? name})`;
}
