import { type AddressInfo, createServer, type Server, type Socket } from "node:net";
import { setImmediate as nextTurn, setTimeout as sleep } from "node:timers/promises";
import { portFault, portSetting } from "../config/port-fault.ts";
import type { Door } from "./channel.ts";

interface StandbyPortOptions {
  readonly host: string;
  readonly port: number;
  readonly maxConnections: number;
  /** Time for which a connection waits for an owner. */
  readonly patienceMs: number;
  /** Milliseconds of a clock that only grows. */
  readonly elapsedMs: () => number;
  /** Returns this replica's own way to serve the port, where it is the owner by now. */
  readonly ownDoor: () => Door | undefined;
  /** Connects to the owner for a client; rejects where there is none, or it cannot be reached. */
  readonly connect: (client: string) => Promise<Socket>;
  /** Tells a client that nobody serves it, and ends its connection. */
  readonly refuse: (socket: Socket) => void;
}

/** A client's connection that is joined to one with the owner. */
interface Passage {
  readonly owner: Socket;
  /** True while the client has sent what the owner has not answered. */
  isAwaited: boolean;
  /** The time at which something passed last. */
  movedMs: number;
}

const retryMs = 100;
/** An answer may come in parts. */
const quietMs = 1_000;
/** Time for which a client may still read and send when the owner has ended the connection. */
const lingerMs = 5_000;

/** A port of a replica that is not the owner: what comes there is passed on to the owner, byte by byte. */
export class StandbyPort {
  readonly #options: StandbyPortOptions;
  readonly #server: Server;
  readonly #sockets = new Set<Socket>();
  readonly #passages = new Set<Passage>();
  #isClosing = false;

  private constructor(options: StandbyPortOptions) {
    this.#options = options;
    this.#server = createServer({ pauseOnConnect: true, allowHalfOpen: true }, (socket) => {
      this.#sockets.add(socket);
      socket.once("close", () => this.#sockets.delete(socket));
      socket.on("error", () => socket.destroy());
      void this.#forward(socket);
    });
    this.#server.maxConnections = options.maxConnections;
  }

  /** Rejects with PORT_UNAVAILABLE. */
  static open(options: StandbyPortOptions): Promise<StandbyPort> {
    const standby = new StandbyPort(options);
    const { host, port } = options;
    return new Promise((resolve, reject) => {
      standby.#server.once("error", (cause) => reject(portFault(host, port, portSetting, cause)));
      standby.#server.listen(port, host, () => resolve(standby));
    });
  }

  /** The port in use; differs from the configured one where that was 0. */
  get port(): number {
    return (this.#server.address() as AddressInfo).port;
  }

  /** Lets another server listen there once it resolves. Connections that were accepted go on. */
  async yield(): Promise<void> {
    // What came while this process was busy is accepted in the next turn; closing now would reset it.
    await nextTurn();
    await nextTurn();
    this.#server.close();
  }

  /**
   * Stops accepting, and ends each connection once its client has been answered, as far as bytes tell: they are not read. After
   * `drainMs` it ends them all.
   */
  async close(drainMs: number): Promise<void> {
    const { elapsedMs } = this.#options;
    this.#server.close();
    this.#isClosing = true;
    for (const untilMs = elapsedMs() + drainMs; this.#sockets.size > 0 && elapsedMs() < untilMs; await sleep(retryMs)) {
      for (const { owner, isAwaited, movedMs } of this.#passages) {
        if (!isAwaited && elapsedMs() - movedMs >= quietMs) owner.destroy();
      }
    }
    for (const socket of this.#sockets) socket.destroy();
  }

  /** Nothing of the client's is read before it is known who serves it: so a try that failed has sent nothing, and is made again. */
  async #forward(socket: Socket): Promise<void> {
    const { patienceMs, elapsedMs, ownDoor, connect, refuse } = this.#options;
    const client = socket.remoteAddress ?? "";
    // By the clock: where packets are lost, a single try takes seconds.
    const untilMs = elapsedMs() + patienceMs;
    while (!socket.destroyed) {
      const door = ownDoor();
      if (door !== undefined) return door(socket);
      const owner = await connect(client).catch(() => undefined);
      if (owner !== undefined) return this.#join(socket, owner);
      if (this.#isClosing || elapsedMs() >= untilMs) return refuse(socket);
      await sleep(retryMs);
    }
  }

  /** Each side ends when the other has. */
  #join(client: Socket, owner: Socket): void {
    const { elapsedMs } = this.#options;
    const passage: Passage = { owner, isAwaited: false, movedMs: elapsedMs() };
    const moved = (isAwaited: boolean) => (): void => void Object.assign(passage, { isAwaited, movedMs: elapsedMs() });
    this.#passages.add(passage);
    client.once("close", () => owner.destroy());
    owner.once("close", () => {
      this.#passages.delete(passage);
      finish(client);
    });
    client.on("data", moved(true)).pipe(owner);
    owner.on("data", moved(false)).pipe(client);
  }
}

/** Reads on until the client has ended, too: one that still sends would be reset, and lose what it was told last. */
function finish(client: Socket): void {
  client.end().resume();
  client.once("end", () => client.destroy());
  setTimeout(() => client.destroy(), lingerMs).unref();
}
