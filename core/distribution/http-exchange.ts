import type { IncomingHttpHeaders } from "node:http";
import { Client, type Dispatcher } from "undici";
import { GatewayError } from "../action/error.ts";
import type { HostSource } from "../egress/destination.ts";
import { EgressError, type EgressGuard } from "../egress/egress-guard.ts";
import { artifactError } from "./file-name.ts";

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

/**
 * Sends the requests of one pull or push: follows no redirect, accepts no encoding, and ends 5 minutes after it was made.
 * Hosts other than the user's own must be public. Throws REGISTRY_UNREACHABLE where no whole response came.
 */
export class HttpExchange {
  readonly #origin: string;
  readonly #host: string;
  readonly #egress: EgressGuard;
  readonly #own: Client;
  readonly #signal = AbortSignal.timeout(transferTimeoutMs);

  /** `origin`: of the host that the user names; its connections are kept. */
  constructor(origin: URL, egress: EgressGuard) {
    this.#origin = origin.origin;
    this.#host = origin.hostname;
    this.#egress = egress;
    this.#own = this.#connect(origin);
  }

  async send({ url, method, headers, body, maxBytes }: HttpQuestion): Promise<HttpReply> {
    const isOwn = url.origin === this.#origin;
    const client = isOwn ? this.#own : this.#connect(url);
    try {
      const path = url.pathname + url.search;
      const options = { path, method, headers, body: body ?? null, signal: this.#signal };
      const { statusCode, headers: found, body: stream } = await client.request(options);
      return { status: statusCode, headers: found, body: await readBody(statusCode, stream, maxBytes) };
    } catch (cause) {
      throw connectionFault(url, cause, this.#signal.aborted);
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

  #sourceOf(url: URL): HostSource {
    return url.hostname === this.#host ? "configuration" : "answer";
  }
}

async function readBody(status: number, stream: Dispatcher.ResponseData["body"], maxBytes: number): Promise<Buffer> {
  const chunks: Buffer[] = [];
  let size = 0;
  // Leaving the loop destroys the body, and with it the connection.
  for await (const chunk of stream as AsyncIterable<Buffer>) {
    size += chunk.length;
    if (size > maxBytes) {
      if (status < 300) throw artifactError(`expected at most ${maxBytes} bytes from the registry, got more`);
      return Buffer.alloc(0);
    }
    chunks.push(chunk);
  }
  return Buffer.concat(chunks, size);
}

function connectionFault({ host }: URL, cause: unknown, isLate: boolean): GatewayError {
  if (cause instanceof GatewayError) return cause;
  const reason = isLate ? `expected an end within ${transferTimeoutMs / 1000} s` : reasonOf(cause);
  return new GatewayError("REGISTRY_UNREACHABLE", `\`${host}\`: ${reason}`, { cause });
}

function reasonOf(cause: unknown): string {
  if (cause instanceof EgressError) return cause.message;
  const { code, name } = cause as NodeJS.ErrnoException;
  return `the connection failed (${code ?? name})`;
}
