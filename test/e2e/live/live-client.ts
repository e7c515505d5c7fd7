import { once } from "node:events";
import { WebSocket } from "ws";

export interface ServerMessage {
  readonly type: string;
  readonly id: string | null;
  readonly payload: Readonly<Record<string, unknown>>;
}

export interface LiveClientOptions {
  readonly key?: string;
  readonly headers?: Readonly<Record<string, string>>;
}

/** A client of `/v1/ws` as anybody would write one. */
export class LiveClient {
  readonly socket: WebSocket;
  readonly heard: ServerMessage[] = [];
  #onMessage: () => void = () => undefined;

  constructor(url: string, { key, headers = {} }: LiveClientOptions = {}) {
    const own = key === undefined ? {} : { "x-api-key": key };
    this.socket = new WebSocket(`${url.replace("http", "ws")}/v1/ws`, { headers: { ...own, ...headers } });
    this.socket.on("error", () => undefined);
    this.socket.on("message", (data) => {
      this.heard.push(JSON.parse(String(data)) as ServerMessage);
      this.#onMessage();
    });
  }

  /** Resolves once it is open; rejects where it is refused. */
  async open(): Promise<this> {
    if (this.socket.readyState !== WebSocket.OPEN) await once(this.socket, "open");
    return this;
  }

  /** The status of the answer that refuses it. */
  async refusal(): Promise<number> {
    const [, response] = (await once(this.socket, "unexpected-response")) as [unknown, { statusCode: number }];
    this.socket.terminate();
    return response.statusCode;
  }

  /** Code and words with which the server closes it. */
  async closed(): Promise<readonly [code: number, reason: string]> {
    const [code, reason] = (await once(this.socket, "close")) as [number, Buffer];
    return [code, String(reason)];
  }

  say(type: string, payload: object = {}, id?: string): void {
    this.socket.send(JSON.stringify({ type, payload, ...(id === undefined ? {} : { id }) }));
  }

  /** The first message, heard or to come, that fits. Rejects after 10 s. */
  async hear(fits: (message: ServerMessage) => boolean): Promise<ServerMessage> {
    for (let next = 0; ; next++) {
      if (next === this.heard.length) await this.#more();
      const message = this.heard[next] as ServerMessage;
      if (fits(message)) return message;
    }
  }

  #more(): Promise<void> {
    return new Promise((resolve, reject) => {
      const late = setTimeout(() => reject(new Error(`heard only ${JSON.stringify(this.heard)}`)), 10_000);
      this.#onMessage = () => {
        clearTimeout(late);
        resolve();
      };
    });
  }
}
