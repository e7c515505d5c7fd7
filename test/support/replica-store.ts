interface ReplicaStoreOptions {
  /** The database: `postgres://…`. */
  readonly url: string;
  /** The secret of the replicas. */
  readonly secret: string;
  /** The port at which others reach it; any free one where left out. */
  readonly port?: number;
  /** The default where left out. */
  readonly leaseMs?: number;
}

/** Returns the line of a configuration, and the environment, that make a gateway on this machine one of several. */
export function replicaStore({ url, secret, port = 0, leaseMs }: ReplicaStoreOptions): {
  readonly config: string;
  readonly env: Readonly<Record<string, string>>;
} {
  const lease = leaseMs === undefined ? "" : `, lease_ms: ${leaseMs}`;
  return {
    config: `store: { engine: postgres, url_env: DATABASE_URL, secret_env: REPLICA_SECRET, host_env: REPLICA_HOST, replica_port: ${port}${lease} }\n`,
    env: { DATABASE_URL: url, REPLICA_SECRET: secret, REPLICA_HOST: "127.0.0.1" },
  };
}
