import type { Socket } from "node:net";
import { hostname } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { GatewayError } from "../action/error.ts";
import type { Random } from "../action/id.ts";
import type { HighWater } from "../evidence/chain/high-water.ts";
import type { Log } from "../observe/log.ts";
import type { OnMoved } from "../store/format.ts";
import { openFolder, openStore, type Store } from "../store/open.ts";
import { connectToOwner, type Door, ReplicaChannel, type ReplicaPort, replicaPorts } from "./channel.ts";
import { type LeaseClaim, type LeaseRow, ReplicaDatabase } from "./database.ts";
import { ForwardedConnections } from "./forwarded-connection.ts";
import { Lease } from "./lease.ts";
import { bytesOf, catchUp } from "./local-copy.ts";
import { ReplicatedStore } from "./replicated-store.ts";
import { SharedKeys } from "./shared-key.ts";
import { SharedMarks } from "./shared-mark.ts";
import { StandbyPort } from "./standby-port.ts";

export interface ReplicaOptions {
  readonly dataDir: string;
  /** The database: `postgres://…`, perhaps with a password. */
  readonly url: string;
  /** The secret that all replicas have. */
  readonly secret: string;
  readonly leaseMs: number;
  /** The name or address at which other replicas reach this one; null: the host name of the machine. */
  readonly host: string | null;
  readonly channel: { readonly host: string; readonly port: number };
  readonly ports: Readonly<Record<ReplicaPort, { readonly host: string; readonly port: number }>>;
  readonly maxConnections: number;
  /** Tells a client that no replica serves it, and ends its connection. */
  readonly refuse: (socket: Socket) => void;
  readonly log: Log;
  readonly random: Random;
  readonly elapsedMs: () => number;
}

/** The store, and all that goes with it, for as long as a replica owns it. */
export interface Ownership {
  /** Resolves when another replica owns the store. */
  readonly lost: Promise<void>;
  readonly marks: HighWater;
  openStore(onMoved: OnMoved): Promise<Store>;
  /** False where another replica may own the store by now. */
  isHeld(): boolean;
  /** Gives a new key file to the other replicas. Durable when it resolves. */
  shareKey(path: string): Promise<void>;
  /** Stops listening at a port, and returns its number for whoever listens there next. */
  takePort(port: ReplicaPort): Promise<number>;
  /** Has the connections of a port that other replicas forward, and those that waited for an owner, served. */
  serve(port: ReplicaPort, door: Door): void;
  /** Has new connections wait for the next owner. */
  stopServing(): void;
  /** Gives the lease back, once nothing is written any more. */
  release(): Promise<void>;
}

/** Time beyond the length of a lease for which a connection waits: an owner that ended is replaced by then. */
const takeoverMs = 15_000;
/** Time for what a former owner answered last to reach its clients. */
const drainMs = 1_000;

/**
 * One of several gateways on one database. The owner of the lease serves; the others keep a copy of the store and forward to it
 * what comes to their ports.
 */
export class Replica {
  readonly #options: ReplicaOptions;
  readonly #database: ReplicaDatabase;
  readonly #keys: SharedKeys;
  readonly #doors = new Map<ReplicaPort, Door>();
  readonly #channel: ReplicaChannel;
  readonly #standby = new Map<ReplicaPort, StandbyPort>();
  /** The numbers of the ports; they stay when others listen there. */
  readonly ports: Record<ReplicaPort, number>;
  #lease: Lease | null = null;
  /** As read last. */
  #known: LeaseRow | null = null;
  #reading: Promise<LeaseRow> | null = null;
  /** Connections to the owner as known. */
  #forwarded = this.#forwardedToNext();
  /** Those that it has not answered yet. */
  readonly #connecting = new Set<Socket>();

  private constructor(options: ReplicaOptions, database: ReplicaDatabase, channel: ReplicaChannel) {
    this.#options = options;
    this.#database = database;
    this.#channel = channel;
    const { dataDir, secret, random, ports } = options;
    this.#keys = new SharedKeys({ folder: join(dataDir, "keys"), database, secret, random });
    this.ports = { gateway: ports.gateway.port, admin: ports.admin.port, metrics: ports.metrics.port };
  }

  /** Opens the database and the ports. Throws STATE_UNUSABLE or PORT_UNAVAILABLE with the next step. */
  static async open(options: ReplicaOptions): Promise<Replica> {
    const { url, leaseMs, channel: place, secret, maxConnections } = options;
    const database = await ReplicaDatabase.open({ url, timeoutMs: leaseMs });
    let replica: Replica | undefined;
    try {
      const doorOf = (port: ReplicaPort, epoch: number): Door | undefined => replica?.doorOf(port, epoch);
      const channel = await ReplicaChannel.open({ ...place, secret, maxConnections, doorOf });
      replica = new Replica(options, database, channel);
      await replica.#listen();
      return replica;
    } catch (cause) {
      await replica?.close(0);
      if (replica === undefined) await database.close();
      throw cause;
    }
  }

  /** Forwards until this replica owns the store; null where it is to stop before. Listens again where an owner did before. */
  async own(stopping: AbortSignal): Promise<Ownership | null> {
    await this.#listen();
    const claimed = await this.#claim(stopping);
    if (claimed === null) return null;
    const { claim, askedMs } = claimed;
    const { log, leaseMs, elapsedMs } = this.#options;
    this.#leaveOwner();
    log.info({ epoch: claim.epoch }, "replica_owner");
    let onLost = (): void => undefined;
    const lost = new Promise<void>((resolve) => {
      onLost = resolve;
    });
    const lease = new Lease({ database: this.#database, claim, leaseMs, elapsedMs, onLost }, askedMs);
    this.#lease = lease;
    try {
      await this.#keys.fetch();
      return this.#ownership(lease, await SharedMarks.open(this.#database, claim), lost);
    } catch (cause) {
      await this.#release(lease);
      if (!isUnavailable(cause)) throw cause;
      log.warn({ cause: messageOf(cause) }, "replica_store_lost");
      return this.own(stopping);
    }
  }

  /** Lets what it forwards be answered for `drainMs`, then forwards no more. Call it once nothing is owned. */
  async close(drainMs: number): Promise<void> {
    await Promise.all([...this.#standby.values()].map((standby) => standby.close(drainMs)));
    await this.#channel.close();
    await this.#database.close();
  }

  doorOf(port: ReplicaPort, epoch: number): Door | undefined {
    return this.#lease?.claim.epoch === epoch ? this.#doors.get(port) : undefined;
  }

  #ownership(lease: Lease, marks: HighWater, lost: Promise<void>): Ownership {
    const { dataDir: dir } = this.#options;
    const parts = { database: this.#database, claim: lease.claim, isHeld: () => lease.isHeld };
    const create = (folder: string, settings: object): Store => new ReplicatedStore(folder, settings, parts);
    return {
      lost,
      marks,
      openStore: (onMoved) => openStore({ dir, enabled: true, create, onMoved }),
      isHeld: parts.isHeld,
      shareKey: (path) => this.#keys.add(lease.claim, path),
      takePort: async (port) => {
        await this.#standby.get(port)?.yield();
        this.#standby.delete(port);
        return this.ports[port];
      },
      serve: (port, door) => this.#doors.set(port, door),
      stopServing: () => this.#doors.clear(),
      release: () => this.#release(lease),
    };
  }

  async #release(lease: Lease): Promise<void> {
    this.#doors.clear();
    this.#lease = null;
    await lease.release();
  }

  /** Keeps the copy current while another replica owns the store, and takes the lease when it can be had. */
  async #claim(stopping: AbortSignal): Promise<{ readonly claim: LeaseClaim; readonly askedMs: number } | null> {
    const { dataDir, leaseMs, log, elapsedMs } = this.#options;
    const copy = await openFolder(dataDir);
    const bytes = bytesOf(copy);
    let isReachable = true;
    try {
      while (!stopping.aborted) {
        try {
          const lease = await this.#readLease();
          checkUse(lease);
          await catchUp(bytes, this.#database, null);
          const askedMs = elapsedMs();
          const claim = lease.isHeld ? undefined : await this.#database.claim(this.#address(), leaseMs);
          if (claim !== undefined) return { claim, askedMs };
          if (!isReachable) log.info("replica_database_reached");
          isReachable = true;
        } catch (cause) {
          if (!isUnavailable(cause)) throw cause;
          if (isReachable) log.warn({ cause: messageOf(cause) }, "replica_database_unreachable");
          isReachable = false;
        }
        await sleep(Math.min(250, leaseMs / 10), undefined, { signal: stopping }).catch(() => undefined);
      }
      return null;
    } finally {
      await copy.close();
    }
  }

  /** Reads the lease, once for all who ask meanwhile. */
  async #readLease(): Promise<LeaseRow> {
    this.#reading ??= this.#database.readLease().finally(() => {
      this.#reading = null;
    });
    const lease = await this.#reading;
    if (this.#known !== null && this.#known.epoch !== lease.epoch) this.#leaveOwner();
    this.#known = lease;
    return lease;
  }

  /** Ends the connections to an owner that was replaced: one that stands still, or was cut off, would never end them itself. */
  #leaveOwner(): void {
    const left = this.#forwarded;
    this.#forwarded = this.#forwardedToNext();
    // One that stands still accepts connections, and answers none of them.
    for (const socket of this.#connecting) socket.destroy();
    setTimeout(() => left.end(), drainMs).unref();
  }

  #forwardedToNext(): ForwardedConnections {
    return new ForwardedConnections((connections) => {
      this.#options.log.warn({ connections }, "replica_owner_unreachable");
    });
  }

  async #listen(): Promise<void> {
    const { ports, leaseMs, maxConnections, refuse, elapsedMs } = this.#options;
    for (const port of replicaPorts) {
      if (this.#standby.has(port)) continue;
      const standby = await StandbyPort.open({
        host: ports[port].host,
        port: this.ports[port],
        maxConnections,
        patienceMs: leaseMs + takeoverMs,
        elapsedMs,
        ownDoor: () => this.#doors.get(port),
        connect: (client) => this.#connect(port, client),
        refuse,
      });
      this.#standby.set(port, standby);
      this.ports[port] = standby.port;
    }
  }

  /** Connects to the owner as known; where that is no longer true, to the one that the database names. */
  async #connect(port: ReplicaPort, client: string): Promise<Socket> {
    const connectTo = async ({ address, epoch }: LeaseRow): Promise<Socket> => {
      const forwarded = this.#forwarded;
      const { secret } = this.#options;
      const connecting = this.#connecting;
      const { socket, link } = await connectToOwner({ port, client, epoch, address, secret, connecting });
      if (forwarded === this.#forwarded) {
        forwarded.add(link);
        return socket;
      }
      socket.destroy();
      throw new Error(`the owner of epoch ${epoch} was replaced meanwhile`);
    };
    const known = this.#known ?? (await this.#readLease());
    try {
      return await connectTo(known);
    } catch (cause) {
      const lease = await this.#readLease();
      if (lease.epoch === known.epoch) throw cause;
      return connectTo(lease);
    }
  }

  #address(): string {
    const host = this.#options.host ?? hostname();
    return `${host.includes(":") ? `[${host}]` : host}:${this.#channel.port}`;
  }
}

function checkUse({ use }: LeaseRow): void {
  if (use === "serving") return;
  const text =
    use === "loading"
      ? "the database has a part of a store; run `gateway store migrate --to postgres` again, which goes on where it stopped"
      : "the store has left this database; serve it where it is now, or choose an empty database";
  throw new GatewayError("STATE_UNUSABLE", text);
}

function isUnavailable(cause: unknown): cause is GatewayError {
  return cause instanceof GatewayError && cause.code === "EVIDENCE_UNAVAILABLE";
}

function messageOf({ message, cause }: GatewayError): string {
  return cause instanceof Error ? cause.message : message;
}
