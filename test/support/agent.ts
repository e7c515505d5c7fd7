import { Client } from "undici";

/** What came back for one message. */
export interface Answer {
  readonly status: number;
  readonly result?: { readonly isError?: boolean; readonly content?: readonly { readonly text: string }[] };
  readonly error?: { readonly code: number; readonly message: string; readonly data?: { readonly code?: string } };
}

/** An agent on one kept connection, with one request at a time. */
export class Agent {
  readonly #client: Client;
  readonly #headers: Readonly<Record<string, string>>;
  #id = 0;

  /** `url`: of the gateway port. `key`: null for a caller without one. `label`: the session's, where it has one. `ticket`: a token. */
  constructor(url: string, key: string | null, label?: string, ticket?: string) {
    this.#client = new Client(url, { pipelining: 1, headersTimeout: 30_000 });
    const session = label === undefined ? {} : { "x-gateway-session-id": label };
    const permit = ticket === undefined ? {} : { "x-gateway-ticket": ticket };
    const own = key === null ? {} : { "x-api-key": key };
    this.#headers = { "content-type": "application/json", ...own, ...session, ...permit };
  }

  /** Calls a tool. Rejects when no whole answer comes. */
  call(name: string, args: object = {}): Promise<Answer> {
    return this.send("tools/call", { name, arguments: args });
  }

  /** Sends any request. Rejects when no whole answer comes. */
  async send(method: string, params: object = {}): Promise<Answer> {
    const message = { jsonrpc: "2.0", id: ++this.#id, method, params };
    const request = { method: "POST", path: "/mcp", headers: this.#headers, body: JSON.stringify(message) } as const;
    const { statusCode, body } = await this.#client.request(request);
    return { ...((await body.json()) as Omit<Answer, "status">), status: statusCode };
  }

  /** Hangs up, whatever is in flight. */
  hangUp(): Promise<void> {
    return this.#client.destroy();
  }
}
