import { once } from "node:events";
import { type AddressInfo, connect, createServer, type Server } from "node:net";

/** A load balancer without stickiness: each connection goes to the next of its targets that accepts it. */
export class RoundRobin {
  readonly #server: Server;
  readonly #passedOver = new Set<number>();
  #turn = 0;

  private constructor(urls: () => readonly string[]) {
    this.#server = createServer({ allowHalfOpen: true }, (client) => {
      const targets = urls();
      const tryNext = (left: number): void => {
        const index = this.#turn++ % targets.length;
        if (this.#passedOver.has(index) && left > 0) {
          tryNext(left - 1);
          return;
        }
        const { port } = new URL(targets[index] ?? "");
        const target = connect({ port: Number(port), host: "127.0.0.1", allowHalfOpen: true });
        client.on("error", () => target.destroy()).on("close", () => target.destroy());
        target.once("error", () => (left > 0 && !client.destroyed ? tryNext(left - 1) : client.destroy()));
        target.once("connect", () => {
          // Each side that ends in order ends the other through its pipe.
          target.removeAllListeners("error").on("error", () => client.destroy());
          client.pipe(target).pipe(client);
        });
      };
      tryNext(targets.length);
    });
  }

  /** `urls`: of the targets as they are when a connection comes. `port`: 0 for any. */
  static async start(urls: () => readonly string[], port = 0): Promise<RoundRobin> {
    const started = new RoundRobin(urls);
    started.#server.listen(port, "127.0.0.1");
    await once(started.#server, "listening");
    return started;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  /** Sends no new connection to a target, or does so again. */
  passOver(index: number, isPassedOver: boolean): void {
    if (isPassedOver) this.#passedOver.add(index);
    else this.#passedOver.delete(index);
  }

  /** Takes no new connection. */
  stop(): void {
    this.#server.close();
  }
}
