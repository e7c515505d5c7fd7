import { type EventStream, type Message, openStream, until } from "./event-stream.ts";
import { type HeaderList, send, type WireResponse } from "./wire.ts";

/** An agent on HTTP+SSE, byte by byte: what it posts and what it reads are tests' to look at. */
export class SseAgent {
  readonly stream: EventStream;
  /** The path that the stream announced. */
  readonly path: string;
  readonly #url: string;
  readonly #key: string;
  #lastId = 0;

  private constructor(url: string, key: string, stream: EventStream, path: string) {
    this.#url = url;
    this.#key = key;
    this.stream = stream;
    this.path = path;
  }

  /** Opens the stream and waits for its first event. Rejects for every status but 200. `url`: of the gateway port. */
  static async connect(url: string, key: string): Promise<SseAgent> {
    const stream = await openStream(url, { target: "/sse", headers: [["x-api-key", key]] });
    if (stream.status !== 200) throw new Error(`expected 200 of /sse, got ${stream.status}`);
    const first = await until(() => stream.events()[0]);
    if (first.event !== "endpoint") throw new Error(`expected \`endpoint\` first, got \`${first.event}\``);
    return new SseAgent(url, key, stream, first.data);
  }

  /** Opens the stream and shakes hands. */
  static async open(url: string, key: string): Promise<SseAgent> {
    const agent = await SseAgent.connect(url, key);
    await agent.request("initialize", introduction);
    await agent.post({ jsonrpc: "2.0", method: "notifications/initialized" });
    return agent;
  }

  /** Posts one message, or the text of one; `headers` in place of the usual ones. */
  post(message: object | string, headers?: HeaderList): Promise<WireResponse> {
    const body = typeof message === "string" ? message : JSON.stringify(message);
    return send(this.#url, { method: "POST", target: this.path, headers: headers ?? postHeaders(this.#key), body });
  }

  /** Posts a request and resolves with its answer on the stream. Rejects unless the post is accepted. */
  async request(method: string, params: object = {}, id: string | number = ++this.#lastId): Promise<Message> {
    const { status, body } = await this.post({ jsonrpc: "2.0", id, method, params });
    if (status !== 202) throw new Error(`expected 202, got ${status}: ${body}`);
    return this.stream.awaitMessage((message) => message.id === id && message.method === undefined);
  }

  /** Calls `echo`, and resolves with its answer. */
  echo(args: object = {}, id?: string | number): Promise<Message> {
    return this.request("tools/call", { name: "echo", arguments: args }, id);
  }

  hangUp(): void {
    this.stream.hangUp();
  }
}

export const introduction: object = {
  protocolVersion: "2024-11-05",
  capabilities: {},
  clientInfo: { name: "sse-agent", version: "1" },
};

export function postHeaders(key: string): HeaderList {
  return [
    ["x-api-key", key],
    ["content-type", "application/json"],
  ];
}
