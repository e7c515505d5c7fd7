import { type AddressInfo, connect as connectTcp, isIP, type Socket } from "node:net";
import { connect as connectTls, createServer, type Server, type TLSSocket } from "node:tls";
import { isJsonObject } from "../action/json.ts";
import { portFault } from "../config/port-fault.ts";
import { deriveReplicaKey } from "./shared-key.ts";

/** The ports whose connections replicas forward. */
export const replicaPorts = ["gateway", "admin", "metrics"] as const;
export type ReplicaPort = (typeof replicaPorts)[number];

/** Takes a connection that has nothing to do with the listening socket of its port. */
export type Door = (socket: Socket) => void;

/** The first line on a connection between replicas: whose it is, and which owner it is for. */
interface Preamble {
  readonly port: ReplicaPort;
  /** Address of the client. */
  readonly client: string;
  readonly epoch: number;
}

interface ChannelOptions {
  readonly host: string;
  readonly port: number;
  /** The secret that all replicas have. */
  readonly secret: string;
  readonly maxConnections: number;
  /** Returns what takes a connection of a port, for the owner of an epoch; undefined where this replica is not that owner. */
  readonly doorOf: (port: ReplicaPort, epoch: number) => Door | undefined;
}

/** Both sides prove that they know the secret (RFC 4279); the exchange is fresh, and the connection encrypted. */
const encryption = { ciphers: "ECDHE-PSK-CHACHA20-POLY1305", minVersion: "TLSv1.2", maxVersion: "TLSv1.2" } as const;
const identity = "gateway-replica";
const helloMs = 5_000;
const maxLine = 512;
const accepted = "ok";
const unreachable = "the other replica cannot be reached";

/** The port at which a replica takes what others forward to the owner. Forwarded connections are never forwarded again. */
export class ReplicaChannel {
  readonly #server: Server;
  readonly #sockets = new Set<Socket>();

  private constructor(options: ChannelOptions) {
    const key = deriveReplicaKey(options.secret, "channel");
    const pskCallback = (_: TLSSocket, name: string): Buffer | null => (name === identity ? key : null);
    this.#server = createServer({ ...encryption, pskCallback, pskIdentityHint: identity, handshakeTimeout: helloMs });
    this.#server.maxConnections = options.maxConnections;
    // A peer without the secret, or one that left.
    this.#server.on("tlsClientError", (_, socket) => socket.destroy());
    this.#server.on("secureConnection", (socket) => {
      this.#sockets.add(socket);
      socket.once("close", () => this.#sockets.delete(socket));
      socket.on("error", () => socket.destroy());
      welcome(socket, options).catch(() => socket.destroy());
    });
  }

  /** Rejects with PORT_UNAVAILABLE. */
  static open(options: ChannelOptions): Promise<ReplicaChannel> {
    const channel = new ReplicaChannel(options);
    const { host, port } = options;
    return new Promise((resolve, reject) => {
      channel.#server.once("error", (cause) => reject(portFault(host, port, "`store.replica_port`", cause)));
      channel.#server.listen(port, host, () => resolve(channel));
    });
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port;
  }

  async close(): Promise<void> {
    const closed = new Promise<void>((resolve) => this.#server.close(() => resolve()));
    for (const socket of this.#sockets) socket.destroy();
    await closed;
  }
}

async function welcome(socket: TLSSocket, { doorOf }: ChannelOptions): Promise<void> {
  const preamble = readPreamble(await readLine(socket));
  const door = preamble === undefined ? undefined : doorOf(preamble.port, preamble.epoch);
  if (preamble === undefined || door === undefined) return void socket.end("not the owner\n");
  // What the port sees is the client, as if it had connected there.
  Object.defineProperty(socket, "remoteAddress", { value: preamble.client });
  // The peer sends nothing before it has read this.
  socket.write(`${accepted}\n`);
  door(socket);
}

function readPreamble(line: string): Preamble | undefined {
  const value: unknown = JSON.parse(line);
  if (!isJsonObject(value)) return undefined;
  const { port, client, epoch } = value;
  if (!replicaPorts.some((name) => name === port) || typeof client !== "string" || isIP(client) === 0) return undefined;
  return typeof epoch === "number" ? { port: port as ReplicaPort, client, epoch } : undefined;
}

/** Reads the first line, without what ends it. Rejects where not all of it is there within 5 s, or it is too long. */
function readLine(socket: Socket): Promise<string> {
  return new Promise((resolve, reject) => {
    let text = "";
    const end = (error?: Error): void => {
      clearTimeout(deadline);
      socket.off("data", onData).off("close", onClose).pause();
      if (error === undefined) resolve(text.slice(0, text.indexOf("\n")));
      else reject(error);
    };
    const onClose = (): void => end(new Error(unreachable));
    const onData = (bytes: Buffer): void => {
      text += bytes.toString("latin1");
      const length = text.indexOf("\n");
      if (length > maxLine || (length === -1 && text.length > maxLine)) end(new Error("expected a short line"));
      else if (length !== -1) end();
    };
    // For the whole line: a peer that sends a byte now and then would hold a place for ever.
    const deadline = setTimeout(() => end(new Error("the other replica did not answer in time")), helloMs);
    socket.on("data", onData).on("close", onClose);
  });
}

interface Forwarded extends Preamble {
  /** `host:port` of the owner. */
  readonly address: string;
  readonly secret: string;
  /** Keeps the socket for as long as the owner has not answered: whoever destroys it there has the connection given up. */
  readonly connecting: Set<Socket>;
}

/** A connection to the owner: what is sent through `socket` passes over `link` encrypted. One ends with the other. */
export interface OwnerConnection {
  readonly socket: Socket;
  readonly link: Socket;
}

/** Connects to the owner. Rejects where it cannot be reached within 5 s, or is no longer the owner of that epoch. */
export async function connectToOwner({
  address,
  secret,
  connecting,
  ...preamble
}: Forwarded): Promise<OwnerConnection> {
  const { hostname, port } = new URL(`tcp://${address}`);
  const link = connectTcp({ host: hostname.replace(/^\[|\]$/g, ""), port: Number(port) });
  link.on("error", () => link.destroy());
  const deadline = setTimeout(() => link.destroy(), helloMs);
  connecting.add(link);
  try {
    await connected(link);
    const socket = connectTls({
      ...encryption,
      socket: link,
      pskCallback: () => ({ identity, psk: deriveReplicaKey(secret, "channel") }),
      // The key names the peer; there is no certificate.
      checkServerIdentity: () => undefined,
    });
    socket.on("error", () => socket.destroy());
    socket.write(`${JSON.stringify(preamble)}\n`);
    if ((await readLine(socket)) === accepted) return { socket, link };
    throw new Error(`expected the owner of epoch ${preamble.epoch}, got another replica`);
  } catch (error) {
    link.destroy();
    throw error;
  } finally {
    clearTimeout(deadline);
    connecting.delete(link);
  }
}

function connected(link: Socket): Promise<void> {
  return new Promise((resolve, reject) => {
    link.once("connect", resolve).once("close", () => reject(new Error(unreachable)));
  });
}
