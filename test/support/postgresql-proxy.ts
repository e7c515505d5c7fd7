import { once } from "node:events";
import { type AddressInfo, connect, createServer, type Server, type Socket } from "node:net";

/** What the proxy does with the next commit of a batch. */
export type Fault = "forward" | "drop the answer" | "drop the batch" | "hold the answer";

/** The statement that commits a batch of entries, as its bytes show it. */
const batchStatement = "SET batch = batch + 1";

/** A TCP port before a PostgreSQL server, which loses batches or the answers to them. */
export class PostgresProxy {
  readonly #server: Server;
  readonly #sockets = new Set<Socket>();
  #target: string;
  #fault: Fault = "forward";
  #met = 0;
  #isCut = false;

  private constructor(target: string) {
    this.#target = target;
    this.#server = createServer((client) => this.#pass(client, connect(this.#target)));
  }

  /** `target`: the socket of the server. */
  static async start(target: string): Promise<PostgresProxy> {
    const proxy = new PostgresProxy(target);
    proxy.#server.listen(0, "127.0.0.1");
    await once(proxy.#server, "listening");
    return proxy;
  }

  urlOf(name: string): string {
    return `postgres://auditor@127.0.0.1:${(this.#server.address() as AddressInfo).port}/${name}`;
  }

  /** How many batches met a fault. */
  get met(): number {
    return this.#met;
  }

  /** The next batch meets it; those after are forwarded. */
  next(fault: Fault): void {
    this.#fault = fault;
  }

  /** Ends every connection, and takes none until `heal`. */
  cut(): void {
    this.#isCut = true;
    for (const socket of this.#sockets) socket.destroy();
  }

  heal(): void {
    this.#isCut = false;
  }

  /** Leads to another server from now on, as an address that moves does; ends what leads to the former. */
  pointTo(target: string): void {
    this.#target = target;
    for (const socket of this.#sockets) socket.destroy();
  }

  stop(): void {
    this.#server.close();
    for (const socket of this.#sockets) socket.destroy();
  }

  #pass(client: Socket, server: Socket): void {
    server.on("error", () => client.destroy());
    if (this.#isCut) {
      client.destroy();
      server.destroy();
      return;
    }
    let fault: Fault = "forward";
    const end = (): void => {
      client.destroy();
      server.destroy();
    };
    for (const socket of [client, server]) {
      this.#sockets.add(socket);
      socket.on("error", end).on("close", () => {
        this.#sockets.delete(socket);
        end();
      });
    }
    client.on("data", (bytes) => {
      if (this.#fault !== "forward" && bytes.includes(batchStatement)) {
        fault = this.#fault;
        this.#fault = "forward";
        this.#met++;
        if (fault === "drop the batch") return end();
      }
      server.write(bytes);
    });
    server.on("data", (bytes) => {
      if (fault === "hold the answer") return; // until the gateway gives up
      // The answer is here: the batch is committed.
      if (fault === "drop the answer") return end();
      client.write(bytes);
    });
  }
}
