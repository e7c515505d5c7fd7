import { once } from "node:events";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";

/** A proxy that lets nothing through and remembers who was asked for: the witness that a client keeps to this machine. */
export class RefusingProxy {
  readonly #hosts = new Set<string>();
  readonly #server: Server;

  private constructor() {
    this.#server = createServer((request, response) => {
      this.#note(request.url ?? "", request.headers.host);
      response.writeHead(403).end();
    });
    this.#server.on("connect", ({ url = "", headers }, socket) => {
      this.#note(url, headers.host);
      socket.on("error", () => undefined); // whoever is refused may reset the connection
      socket.end("HTTP/1.1 403 Forbidden\r\n\r\n");
    });
  }

  static async start(): Promise<RefusingProxy> {
    const proxy = new RefusingProxy();
    proxy.#server.listen(0, "127.0.0.1");
    await once(proxy.#server, "listening");
    return proxy;
  }

  /** The hosts that were asked for, sorted. */
  get hosts(): readonly string[] {
    return [...this.#hosts].sort();
  }

  /** Variables that send a program's requests here, but for those to this machine. */
  get env(): Readonly<Record<string, string>> {
    const url = `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
    const own = "127.0.0.1,localhost";
    const names = ["HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy"];
    const proxies = Object.fromEntries(names.map((name) => [name, url]));
    return { ...proxies, NO_PROXY: own, no_proxy: own, NODE_USE_ENV_PROXY: "1" };
  }

  stop(): void {
    this.#server.close();
    this.#server.closeAllConnections();
  }

  #note(url: string, host: string | undefined): void {
    this.#hosts.add((url.startsWith("/") ? (host ?? url) : url).replace(/^https?:\/\/|:\d+$|\/.*$/g, ""));
  }
}
