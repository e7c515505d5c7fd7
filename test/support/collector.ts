import { once } from "node:events";
import { createServer, type IncomingHttpHeaders, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { buffer } from "node:stream/consumers";
import { readJsonSpans, readProtobufSpans, type ToldSpan } from "./otlp-reader.ts";

/** What a collector was sent. */
export interface ToldRequest {
  readonly path: string;
  readonly headers: IncomingHttpHeaders;
  readonly body: Buffer;
}

/** A server that speaks OTLP over HTTP as collectors do, and keeps what it is told. */
export class Collector {
  readonly requests: ToldRequest[] = [];
  /** What it has taken. */
  readonly spans: ToldSpan[] = [];
  /** What it answers with; anything but 2xx is not taken. Undefined: nothing, ever. */
  status: number | undefined = 200;
  /** Where it sends whoever asks, beside its status. */
  location: string | undefined;
  readonly #server: Server;

  private constructor() {
    this.#server = createServer(async (request, response) => {
      const { url: path = "", headers } = request;
      const told = { path, headers, body: await buffer(request).catch(() => Buffer.alloc(0)) };
      this.requests.push(told);
      this.#answer(told, response);
    });
  }

  /** `port`: of an earlier one that is to be back. */
  static async start(port: number = 0): Promise<Collector> {
    const collector = new Collector();
    collector.#server.listen(port, "127.0.0.1");
    await once(collector.#server, "listening");
    return collector;
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port;
  }

  get url(): string {
    return `http://127.0.0.1:${this.port}`;
  }

  /** The spans of a trace, once it has one of that kind that has no parent among them. Throws after 10 s. */
  async trace(traceId: string): Promise<readonly ToldSpan[]> {
    return this.await(() => {
      const spans = this.spans.filter((span) => span.traceId === traceId);
      return spans.some(({ kind }) => kind === 2) ? spans : undefined;
    });
  }

  /** Resolves with what `find` finds. Throws after 10 s. */
  async await<T>(find: () => T | undefined): Promise<T> {
    const end = performance.now() + 60_000;
    for (;;) {
      const found = find();
      if (found !== undefined) return found;
      if (performance.now() > end) {
        throw new Error(`expected more of the gateway, got ${this.spans.map(({ name }) => name).join(", ")}`);
      }
      await new Promise((resolve) => setTimeout(resolve, 25));
    }
  }

  stop(): void {
    this.#server.close();
    this.#server.closeAllConnections();
  }

  #answer({ path, headers, body }: ToldRequest, response: ServerResponse): void {
    if (this.status === undefined) return;
    const isJson = headers["content-type"] === "application/json";
    if (this.status < 300 && path.endsWith("/v1/traces")) {
      this.spans.push(...(isJson ? readJsonSpans(body) : readProtobufSpans(body)));
    }
    const elsewhere = this.location === undefined ? {} : { location: this.location };
    response.writeHead(this.status, { "content-type": String(headers["content-type"]), ...elsewhere });
    response.end(isJson ? "{}" : "");
  }
}

/** Spans as a tree of their names, in the order in which they were told of. */
export function treeOf(spans: readonly ToldSpan[], root: ToldSpan): readonly [name: string, ...below: unknown[]] {
  const below = spans.filter(({ parentSpanId }) => parentSpanId === root.spanId);
  return [root.name, ...below.map((span) => treeOf(spans, span))];
}
