import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import { createServer as createTlsServer } from "node:https";
import type { AddressInfo } from "node:net";
import { text } from "node:stream/consumers";
import { setTimeout as sleep } from "node:timers/promises";
import type { NoticeType } from "../../core/config/gateway-config.ts";

/** One request as it arrived. */
export interface Delivery {
  readonly id: string;
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
  readonly notice: {
    readonly type: NoticeType;
    readonly timestamp: string;
    readonly data: Readonly<Record<string, unknown>>;
  };
  readonly atMs: number;
}

export type Respond = (response: ServerResponse, delivery: Delivery) => void;

/** Key and certificate, PEM. */
export interface TlsIdentity {
  readonly key: string;
  readonly cert: string;
}

/** A webhook receiver behind real HTTP, or HTTPS where it has an identity, which keeps what it was sent and answers 204 unless told otherwise. */
export class WebhookReceiver {
  readonly deliveries: Delivery[] = [];
  /** Most requests that were open at once. */
  maxOpen = 0;
  respond: Respond = (response) => answer(response, 204);
  readonly #server: Server;
  #open = 0;

  readonly #scheme: "http" | "https";

  private constructor(tls: TlsIdentity | undefined) {
    const serve = (request: IncomingMessage, response: ServerResponse): void => void this.#serve(request, response);
    this.#scheme = tls === undefined ? "http" : "https";
    this.#server = tls === undefined ? createServer(serve) : createTlsServer(tls, serve);
  }

  static async start(port = 0, tls?: TlsIdentity): Promise<WebhookReceiver> {
    const receiver = new WebhookReceiver(tls);
    await new Promise<void>((resolve) => receiver.#server.listen(port, "127.0.0.1", resolve));
    return receiver;
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port;
  }

  get url(): string {
    return `${this.#scheme}://127.0.0.1:${this.port}/hook`;
  }

  get ids(): readonly string[] {
    return this.deliveries.map(({ id }) => id);
  }

  /** Resolves once `count` requests have arrived. Throws after 10 s. */
  async arrived(count: number): Promise<readonly Delivery[]> {
    await until(() => this.deliveries.length >= count, `${count} deliveries`);
    return this.deliveries;
  }

  stop(): void {
    this.#server.close();
    this.#server.closeAllConnections();
  }

  async #serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    this.maxOpen = Math.max(this.maxOpen, ++this.#open);
    response.once("close", () => this.#open--);
    const body = await text(request);
    const headers = request.headers as Readonly<Record<string, string>>;
    const id = headers["webhook-id"] ?? "";
    const delivery = { id, path: request.url ?? "", headers, body, notice: JSON.parse(body), atMs: performance.now() };
    this.deliveries.push(delivery);
    this.respond(response, delivery);
  }
}

export function answer(response: ServerResponse, status: number, headers: Readonly<Record<string, string>> = {}): void {
  response.writeHead(status, headers).end();
}

/** Looks every 5 ms. Throws after 10 s. */
export async function until(done: () => boolean | Promise<boolean>, what: string): Promise<void> {
  const deadline = performance.now() + 60_000;
  while (!(await done())) {
    if (performance.now() > deadline) throw new Error(`expected ${what} within 60 s`);
    await sleep(5);
  }
}
