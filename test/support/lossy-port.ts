import { once } from "node:events";
import { connect, createServer, type Server, type Socket } from "node:net";

interface Place {
  readonly host: string;
  readonly port: number;
}

/** A TCP port before another one, on which everything is lost while it is cut: no byte, no end and no reset comes through. */
export class LossyPort {
  readonly #server: Server;
  readonly #sockets = new Set<Socket>();
  #isCut = false;

  private constructor(target: Place) {
    this.#server = createServer({ allowHalfOpen: true }, (client) => this.#pass(client, target));
  }

  static async start({ host, port }: Place, target: Place): Promise<LossyPort> {
    const lossy = new LossyPort(target);
    lossy.#server.listen(port, host);
    await once(lossy.#server, "listening");
    return lossy;
  }

  cut(): void {
    this.#isCut = true;
    for (const socket of this.#sockets) socket.pause();
  }

  /** What was lost on open connections arrives now, as it does when both sides send it again. */
  heal(): void {
    this.#isCut = false;
    for (const socket of this.#sockets) socket.resume();
  }

  stop(): void {
    this.#server.close();
    for (const socket of this.#sockets) socket.destroy();
  }

  #pass(client: Socket, target: Place): void {
    this.#track(client);
    // Never answered. Whoever waits for it gives it up.
    if (this.#isCut) return void client.resume().on("end", () => client.destroy());
    const server = this.#track(connect({ ...target, allowHalfOpen: true }));
    for (const [from, to] of [
      [client, server],
      [server, client],
    ] as const) {
      from
        .on("data", (bytes) => to.write(bytes))
        .on("end", () => to.end())
        .on("close", () => to.destroy());
    }
  }

  #track(socket: Socket): Socket {
    this.#sockets.add(socket);
    return socket.on("error", () => socket.destroy()).on("close", () => this.#sockets.delete(socket));
  }
}
