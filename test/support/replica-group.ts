import { randomBytes } from "node:crypto";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { freePort } from "./free-port.ts";
import { type GatewayOptions, type RunningGateway, startGateway } from "./gateway.ts";
import { type PostgresOptions, PostgresServer } from "./postgresql.ts";
import { replicaStore } from "./replica-store.ts";

interface GroupOptions extends Pick<GatewayOptions, "config" | "files" | "limitsShares" | "env"> {
  readonly leaseMs: number;
  readonly postgres?: PostgresOptions;
}

interface MemberOptions extends Pick<GatewayOptions, "files" | "host" | "launcher"> {
  readonly secret?: string;
  readonly databaseUrl?: string;
  readonly env?: Record<string, string>;
  /** The port at which others reach it; left out: a free one. */
  readonly replicaPort?: number;
}

/** Replicas of one gateway on a database of their own. */
export class ReplicaGroup {
  readonly postgres: PostgresServer;
  readonly databaseUrl: string;
  readonly members: RunningGateway[] = [];
  readonly #options: GroupOptions;
  readonly #folder: string;
  readonly #secret = randomBytes(32).toString("hex");

  private constructor(postgres: PostgresServer, databaseUrl: string, folder: string, options: GroupOptions) {
    this.postgres = postgres;
    this.databaseUrl = databaseUrl;
    this.#folder = folder;
    this.#options = options;
  }

  /** Starts the database alone. `config`: without `listen` and `store`. */
  static async create(options: GroupOptions): Promise<ReplicaGroup> {
    const postgres = await PostgresServer.start(options.postgres);
    const folder = await mkdtemp(join(tmpdir(), "replicas-"));
    return new ReplicaGroup(postgres, await postgres.createDatabase("gateway"), folder, options);
  }

  /** Starts a replica, or one that ended anew on its own folder. */
  async start(index: number, over: MemberOptions = {}): Promise<RunningGateway> {
    const port = over.replicaPort ?? (await freePort());
    const { config, env = {}, limitsShares = false, leaseMs } = this.#options;
    const { files = this.#options.files } = over;
    const { databaseUrl: url = this.databaseUrl, secret = this.#secret, host, launcher } = over;
    const store = replicaStore({ url, secret, port, leaseMs });
    const member = await startGateway({
      config: `${config}\n${store.config}`,
      ...(files === undefined ? {} : { files }),
      ...(host === undefined ? {} : { host }),
      ...(launcher === undefined ? {} : { launcher }),
      folder: this.folderOf(index),
      env: { ...store.env, ...env, ...over.env },
      limitsShares,
    });
    this.members[index] = member;
    return member;
  }

  member(index: number): RunningGateway {
    const member = this.members[index];
    if (member === undefined) throw new Error(`expected a replica ${index}`);
    return member;
  }

  folderOf(index: number): string {
    return join(this.#folder, `replica-${index}`);
  }

  /** The index of the replica that owns the store by its own log; of the last one that came to. */
  owner(): number {
    const epochs = this.members.map((member) => {
      const lines = member
        .stderr()
        .split("\n")
        .filter((line) => line.includes('"replica_owner"'));
      return Math.max(0, ...lines.map((line) => Number(JSON.parse(line).epoch)));
    });
    return epochs.indexOf(Math.max(...epochs));
  }

  async stop(): Promise<void> {
    await Promise.all(this.members.map((member) => member.stop()));
    await this.postgres.stop();
    await rm(this.#folder, { recursive: true });
  }
}
