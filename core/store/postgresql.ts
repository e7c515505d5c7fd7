import type pg from "pg";

interface PoolOptions {
  /** `postgres://…`, perhaps with a password. */
  readonly url: string;
  /** Connections at most. */
  readonly max: number;
  /** Time after which a connection cannot be had. */
  readonly connectMs: number;
  /** Time after which a statement is not answered. */
  readonly statementMs: number;
  /** Awaited before a new connection is used; where it rejects, so does what the connection was for. */
  readonly onConnect?: (client: pg.ClientBase) => Promise<void>;
}

/**
 * Has the database end a session, and with it its locks, once the machine of this process has answered nothing for so long. By
 * itself it notices after hours that a machine has lost its power, or the network to it.
 */
const endUnreached = `
SELECT set_config('tcp_keepalives_idle', '1', false), set_config('tcp_keepalives_interval', '1', false),
  set_config('tcp_user_timeout', $1, false)`;

/** Loads the driver, an optional package, and makes a pool, which connects when it is first used. */
export async function openPool({ url, max, connectMs, statementMs, onConnect }: PoolOptions): Promise<pg.Pool> {
  const { default: driver } = await import("pg");
  const pool = new driver.Pool({
    connectionString: url,
    max,
    connectionTimeoutMillis: connectMs,
    query_timeout: statementMs,
    statement_timeout: statementMs,
    application_name: "agent-governance-gateway",
    onConnect: async (client) => {
      await client.query(endUnreached, [String(statementMs)]);
      await onConnect?.(client);
    },
  });
  // A connection that breaks while nothing asks it, idle or between two statements: the next use finds it closed.
  return pool.on("error", () => undefined).on("connect", (client) => client.on("error", () => undefined));
}

/** Describes a failure of a database. Never the address: it may hold a password. */
export function describeDatabaseFailure(cause: unknown): string {
  if (cause instanceof AggregateError) return describeDatabaseFailure(cause.errors[0]);
  const { code, message } = cause as { readonly code?: string; readonly message: string };
  return code === undefined ? message : `${code}: ${message}`;
}
