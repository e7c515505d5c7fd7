import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { text } from "node:stream/consumers";

/** What the upstream does with a call it has booked. */
export type Mood = (response: ServerResponse, id: number | string) => void;

interface Message {
  readonly id?: number | string;
  readonly method?: string;
  readonly params?: { readonly name?: string; readonly arguments?: object };
}

/** An MCP server over Streamable HTTP that books each call of a tool and then does as its mood is. */
export class MoodyUpstream {
  /** The calls of tools, in order, as they arrived. */
  readonly calls: NonNullable<Message["params"]>[] = [];
  mood: Mood = moods.answers;
  readonly #server: Server;
  readonly #streams = new Set<ServerResponse>();
  #tools: readonly object[] = [{ name: "echo", description: "Answers.", inputSchema: { type: "object" } }];

  private constructor() {
    this.#server = createServer((request, response) => void this.#serve(request, response));
  }

  static async start(): Promise<MoodyUpstream> {
    const upstream = new MoodyUpstream();
    await new Promise<void>((resolve) => upstream.#server.listen(0, "127.0.0.1", resolve));
    return upstream;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}/mcp`;
  }

  /** Publishes other tools, and says so. */
  publish(tools: readonly object[]): void {
    this.#tools = tools;
    const change = JSON.stringify({ jsonrpc: "2.0", method: "notifications/tools/list_changed" });
    for (const stream of this.#streams) stream.write(`data: ${change}\n\n`);
  }

  /** Publishes other tools, and does not say so. */
  swap(tools: readonly object[]): void {
    this.#tools = tools;
  }

  stop(): void {
    this.#server.close();
    this.#server.closeAllConnections();
  }

  async #serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    if (request.method === "GET") return this.#stream(response);
    const { id, method, params } = JSON.parse((await text(request)) || "{}") as Message;
    if (id === undefined) response.writeHead(202).end();
    else if (method === "initialize") reply(response, id, { result: initialized });
    else if (method === "tools/list") reply(response, id, { result: { tools: this.#tools } });
    else if (method === "tools/call") {
      this.calls.push(params ?? {});
      this.mood(response, id);
    } else reply(response, id, { error: { code: -32601, message: "method not found" } });
  }

  #stream(response: ServerResponse): void {
    response.writeHead(200, { "content-type": "text/event-stream" }).flushHeaders();
    this.#streams.add(response);
    response.once("close", () => this.#streams.delete(response));
  }
}

const done = { content: [{ type: "text", text: "done" }] };

type MoodName =
  | "answers"
  | "answersLate"
  | "answersIsError"
  | "refuses"
  | "answers503"
  | "resets"
  | "hangs"
  | "diesInTheMiddle"
  | "diesInTheBody"
  | "talksNonsense"
  | "answersAnother";

export const moods: Readonly<Record<MoodName, Mood>> = {
  answers: (response, id) => reply(response, id, { result: done }),
  answersLate: (response, id) => void setTimeout(() => reply(response, id, { result: done }), 600),
  answersIsError: (response, id) => reply(response, id, { result: { ...done, isError: true } }),
  refuses: (response, id) => reply(response, id, { error: { code: -32603, message: "refused" } }),
  answers503: (response) => void response.writeHead(503).end("down"),
  resets: (response) => void response.socket?.resetAndDestroy(),
  hangs: () => undefined,
  diesInTheMiddle: (response, id) => {
    response.writeHead(200, { "content-type": "text/event-stream" });
    response.write(`data: {"jsonrpc":"2.0","id":${JSON.stringify(id)},"resu`, () => response.socket?.resetAndDestroy());
  },
  diesInTheBody: (response) => {
    response.writeHead(200, { "content-type": "application/json", "content-length": "1000" });
    response.write(`{"jsonrpc":"2.0",`, () => response.socket?.resetAndDestroy());
  },
  talksNonsense: (response) => {
    response.writeHead(200, { "content-type": "application/json" }).end("<html>");
  },
  answersAnother: (response) => reply(response, "another", { result: done }),
};

const initialized = {
  protocolVersion: "2025-11-25",
  capabilities: { tools: { listChanged: true } },
  serverInfo: { name: "moody", version: "1.0.0" },
};

function reply(response: ServerResponse, id: number | string, body: object): void {
  response.writeHead(200, { "content-type": "application/json" });
  response.end(JSON.stringify({ jsonrpc: "2.0", id, ...body }));
}
