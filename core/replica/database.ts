import type pg from "pg";
import { GatewayError } from "../action/error.ts";
import { requireOptional } from "../config/optional-package.ts";
import type { Mark } from "../evidence/chain/high-water.ts";
import { describeDatabaseFailure, openPool } from "../store/postgresql.ts";

/** A write of a batch, in the bytes that the store keeps; no value deletes the key. */
export interface EntryWrite {
  readonly key: Buffer;
  readonly value: Buffer | null;
}

/** An entry that is there. */
export type Entry = EntryWrite & { readonly value: Buffer };

/** The lease as the database has it. */
export interface LeaseRow {
  /** Tells databases apart, so that no copy is brought up to date from another one. */
  readonly database: string;
  readonly epoch: number;
  /** `host:port` at which the owner takes what other replicas forward; empty before the first owner. */
  readonly address: string;
  /** False once the lease has ended by the database's clock. */
  readonly isHeld: boolean;
  /** The last batch that was committed. */
  readonly batch: number;
  /** Entries that were deleted up to this batch are no longer listed among the changes. */
  readonly horizon: number;
  readonly use: DatabaseUse;
}

/** `loading`: a migration has brought a part of the store. `moved`: it went on elsewhere. Replicas serve from neither. */
export type DatabaseUse = "serving" | "loading" | "moved";

/** An owner's claim: of what it writes under an epoch, nothing is committed once the next has begun. */
export interface LeaseClaim {
  readonly epoch: number;
}

interface DatabaseOptions {
  /** `postgres://…` */
  readonly url: string;
  /** Time after which the database has not answered. */
  readonly timeoutMs: number;
}

/** Entries as of one batch, in the order in which they changed. */
export interface Changes {
  readonly lease: LeaseRow;
  readonly pages: AsyncIterable<readonly EntryWrite[]>;
}

const format = 1;
/** Two replicas that start at once must not both create the tables. Any number that nobody else locks. */
const schemaLock = 7_140_926_113;
const pageRows = 2_000;

const schema = `
CREATE TABLE IF NOT EXISTS gateway_lease (
  id boolean PRIMARY KEY DEFAULT true CHECK (id),
  database uuid NOT NULL,
  format integer NOT NULL,
  epoch bigint NOT NULL,
  address text NOT NULL,
  until timestamptz NOT NULL,
  batch bigint NOT NULL,
  horizon bigint NOT NULL,
  use text NOT NULL
);
CREATE TABLE IF NOT EXISTS gateway_entry (key bytea PRIMARY KEY, value bytea, batch bigint NOT NULL);
CREATE INDEX IF NOT EXISTS gateway_entry_batch ON gateway_entry (batch, key);
CREATE TABLE IF NOT EXISTS gateway_mark (tenant text PRIMARY KEY, chain text NOT NULL, seq bigint NOT NULL, head text NOT NULL);
CREATE TABLE IF NOT EXISTS gateway_key (name text PRIMARY KEY, sealed text NOT NULL);
INSERT INTO gateway_lease VALUES (true, md5(random()::text || clock_timestamp()::text)::uuid, ${format}, 0, '', '-infinity', 0, 0, 'serving')
  ON CONFLICT DO NOTHING;
`;

const leaseColumns = `database::text, format, epoch::float8, address, until > clock_timestamp() AS "isHeld", batch::float8, horizon::float8, use`;

/** Takes the row of the lease first: a batch of the owner before either is committed by then, or never will be. */
const commitBatch = `
WITH lease AS (UPDATE gateway_lease SET batch = batch + 1 WHERE epoch = $1 AND batch = $4 RETURNING batch),
entries AS (
  INSERT INTO gateway_entry (key, value, batch)
  SELECT given.key, given.value, lease.batch FROM lease, unnest($2::bytea[], $3::bytea[]) AS given (key, value)
  ON CONFLICT (key) DO UPDATE SET value = excluded.value, batch = excluded.batch
)
SELECT batch::float8 FROM lease`;

const raiseMarks = `
WITH lease AS (SELECT 1 FROM gateway_lease WHERE epoch = $1 FOR SHARE)
INSERT INTO gateway_mark (tenant, chain, seq, head)
SELECT given.* FROM lease, unnest($2::text[], $3::text[], $4::bigint[], $5::text[]) AS given
ON CONFLICT (tenant) DO UPDATE SET chain = excluded.chain, seq = excluded.seq, head = excluded.head
  WHERE excluded.seq >= gateway_mark.seq
RETURNING tenant`;

/**
 * Everything that replicas share, in PostgreSQL 13 or later: the lease that names the owner, every entry of the store, the marks of the
 * chains, and the sealed key files. Only the owner writes, and every write checks its epoch in its own transaction.
 *
 * A method resolves once its write is on the database's disk. It rejects with EVIDENCE_UNAVAILABLE where the database does not answer in
 * time, or the epoch has passed. A write that was not answered may have been committed: read the changes before anything else is written.
 */
export class ReplicaDatabase {
  readonly #pool: pg.Pool;

  private constructor(pool: pg.Pool) {
    this.#pool = pool;
  }

  /** Opens the database, creating its tables where there are none. Throws STATE_UNUSABLE where it cannot be used. */
  static async open({ url, timeoutMs }: DatabaseOptions): Promise<ReplicaDatabase> {
    requireOptional("replicas", "`store.engine: postgres`", "STATE_UNUSABLE");
    // The owner's batches, its lease, and a reader.
    const limits = { max: 4, connectMs: timeoutMs, statementMs: timeoutMs };
    const pool = await openPool({ url, ...limits, onConnect: requireDurability });
    const database = new ReplicaDatabase(pool);
    try {
      await database.#createTables();
      return database;
    } catch (cause) {
      await pool.end();
      if (cause instanceof GatewayError) throw cause;
      const text = `the database of \`store.url_env\` cannot be used (${describeDatabaseFailure(cause)}); check that it runs, and what the variable holds`;
      throw new GatewayError("STATE_UNUSABLE", text, { cause });
    }
  }

  async readLease(): Promise<LeaseRow> {
    const rows = await this.#rows<LeaseRow>(`SELECT ${leaseColumns} FROM gateway_lease`, []);
    return only(rows);
  }

  /** Takes the lease where nobody holds it. Undefined where somebody does. */
  async claim(address: string, leaseMs: number): Promise<LeaseClaim | undefined> {
    const statement = `UPDATE gateway_lease SET epoch = epoch + 1, address = $1, until = ${untilIn(2)}
      WHERE until <= clock_timestamp() RETURNING epoch::float8`;
    const [row] = await this.#rows<LeaseClaim>(statement, [address, leaseMs]);
    return row;
  }

  /** Extends the lease, also one that has ended and that nobody took. False where another owner has it. */
  async renew({ epoch }: LeaseClaim, leaseMs: number): Promise<boolean> {
    const statement = `UPDATE gateway_lease SET until = ${untilIn(2)} WHERE epoch = $1 RETURNING epoch`;
    return (await this.#rows(statement, [epoch, leaseMs])).length > 0;
  }

  /** Ends the lease at once, so that nobody waits for it to run out. */
  async release({ epoch }: LeaseClaim): Promise<void> {
    await this.#rows("UPDATE gateway_lease SET until = '-infinity' WHERE epoch = $1", [epoch]);
  }

  /**
   * Commits writes atomically, the last of each key, as the batch that follows `after`, and returns its number. A statement that
   * arrives when its sender has given it up finds another batch there, and changes nothing.
   */
  async commit({ epoch }: LeaseClaim, after: number, writes: readonly EntryWrite[]): Promise<number> {
    const last = new Map(writes.map((write) => [write.key.toString("latin1"), write]));
    const keys = [...last.values()].map(({ key }) => key);
    const values = [...last.values()].map(({ value }) => value);
    const [row] = await this.#rows<{ readonly batch: number }>(commitBatch, [epoch, keys, values, after]);
    if (row === undefined)
      throw new GatewayError("EVIDENCE_UNAVAILABLE", "another replica owns the store, or another batch came first");
    return row.batch;
  }

  /**
   * Reads every entry that changed after a batch, as of one moment, for as long as `use` runs. With a claim no batch of an earlier
   * write is still on its way meanwhile; rejects where the claim's epoch has passed.
   */
  async readChanges(after: number, claim: LeaseClaim | null, use: (changes: Changes) => Promise<void>): Promise<void> {
    const client = await this.#pool.connect().catch(unreachable);
    try {
      // The row is locked by a statement of its own: what the next one sees begins behind the wait for the lock.
      await client.query("BEGIN ISOLATION LEVEL READ COMMITTED");
      if (claim !== null) {
        const held = await client.query("SELECT 1 FROM gateway_lease WHERE epoch = $1 FOR UPDATE", [claim.epoch]);
        if (held.rowCount === 0) throw new GatewayError("EVIDENCE_UNAVAILABLE", leaseLost);
      } else await client.query("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ");
      const lease = only((await client.query<LeaseRow>(`SELECT ${leaseColumns} FROM gateway_lease`)).rows);
      await use({ lease, pages: pagesAfter(client, after) });
      await client.query("COMMIT");
      client.release();
    } catch (cause) {
      // The connection ends, and with it the transaction.
      client.release(true);
      throw cause instanceof GatewayError ? cause : unreachable(cause);
    }
  }

  async setUse({ epoch }: LeaseClaim, use: DatabaseUse): Promise<void> {
    const rows = await this.#rows("UPDATE gateway_lease SET use = $2 WHERE epoch = $1 RETURNING 1", [epoch, use]);
    if (rows.length === 0) throw new GatewayError("EVIDENCE_UNAVAILABLE", leaseLost);
  }

  /** Reads at most 2,000 entries that are not deleted, in the order of their keys, behind one. */
  async readEntries(after: Buffer): Promise<readonly Entry[]> {
    const statement = `SELECT key, value FROM gateway_entry WHERE key > $1 AND value IS NOT NULL ORDER BY key LIMIT ${pageRows}`;
    return this.#rows<Entry>(statement, [after]);
  }

  /** The last key by its bytes; undefined where there is no entry. */
  async readLastKey(): Promise<Buffer | undefined> {
    const rows = await this.#rows<{ readonly key: Buffer }>(
      "SELECT key FROM gateway_entry ORDER BY key DESC LIMIT 1",
      [],
    );
    return rows[0]?.key;
  }

  /** Lists no more what was deleted up to a batch. */
  async forgetDeleted({ epoch }: LeaseClaim, horizon: number): Promise<void> {
    const statement = `
      WITH lease AS (UPDATE gateway_lease SET horizon = $2 WHERE epoch = $1 AND horizon < $2 RETURNING 1)
      DELETE FROM gateway_entry USING lease WHERE value IS NULL AND batch <= $2`;
    await this.#rows(statement, [epoch, horizon]);
  }

  /** Frees what overwritten and deleted entries took. Their bytes may remain in the database's write-ahead log and backups. */
  async vacuum(): Promise<void> {
    await this.#rows("VACUUM gateway_entry", []);
  }

  async readMarks(): Promise<readonly Mark[]> {
    return this.#rows<Mark>("SELECT tenant, chain, seq::float8, head FROM gateway_mark", []);
  }

  /** Raises marks; durable when it resolves. */
  async raiseMarks({ epoch }: LeaseClaim, marks: readonly Mark[]): Promise<void> {
    const column = <Name extends keyof Mark>(name: Name): Mark[Name][] => marks.map((mark) => mark[name]);
    const values = [epoch, column("tenant"), column("chain"), column("seq"), column("head")];
    if ((await this.#rows(raiseMarks, values)).length < marks.length) {
      throw new GatewayError("EVIDENCE_UNAVAILABLE", leaseLost);
    }
  }

  /** The sealed key files by their names. */
  async readKeys(): Promise<ReadonlyMap<string, string>> {
    const rows = await this.#rows<{ name: string; sealed: string }>("SELECT name, sealed FROM gateway_key", []);
    return new Map(rows.map(({ name, sealed }) => [name, sealed]));
  }

  /** Adds a sealed key file; one that is there stays as it is. */
  async addKey({ epoch }: LeaseClaim, name: string, sealed: string): Promise<void> {
    const statement = `
      WITH lease AS (SELECT 1 FROM gateway_lease WHERE epoch = $1 FOR SHARE),
      added AS (INSERT INTO gateway_key SELECT $2, $3 FROM lease ON CONFLICT DO NOTHING)
      SELECT 1 FROM lease`;
    if ((await this.#rows(statement, [epoch, name, sealed])).length === 0) {
      throw new GatewayError("EVIDENCE_UNAVAILABLE", leaseLost);
    }
  }

  async close(): Promise<void> {
    await this.#pool.end();
  }

  async #createTables(): Promise<void> {
    const client = await this.#pool.connect();
    try {
      await client.query("BEGIN");
      await client.query("SELECT pg_advisory_xact_lock($1)", [schemaLock]);
      await client.query(schema);
      await client.query("COMMIT");
      const { rows } = await client.query<{ readonly format: number }>("SELECT format FROM gateway_lease");
      const found = only(rows).format;
      if (found === format) return;
      const text = `expected database format \`${format}\`, got \`${found}\`; use the version that wrote it, or another database`;
      throw new GatewayError("STATE_UNUSABLE", text);
    } finally {
      client.release();
    }
  }

  async #rows<Row>(statement: string, values: readonly unknown[]): Promise<readonly Row[]> {
    const result = await this.#pool.query(statement, [...values]).catch(unreachable);
    return result.rows as Row[];
  }
}

const leaseLost = "another replica owns the store";

const durability = `
SELECT current_setting('fsync') AS fsync, set_config('synchronous_commit', coalesce(nullif(current_setting('synchronous_commit'), 'off'), 'on'), false)`;

/**
 * Has the server write what a connection commits to its disk before it answers, also where it is set to answer first. Throws
 * STATE_UNUSABLE for a server that leaves the moment of writing to its system.
 */
async function requireDurability(client: pg.ClientBase): Promise<void> {
  const { fsync } = only((await client.query<{ readonly fsync: string }>(durability)).rows);
  if (fsync === "on") return;
  const text = `expected a database with \`fsync = on\`, got \`${fsync}\`: a crash loses what was acknowledged; set it in postgresql.conf`;
  throw new GatewayError("STATE_UNUSABLE", text);
}

/** Entries that changed after a batch, page by page. */
async function* pagesAfter(client: pg.PoolClient, after: number): AsyncIterable<readonly EntryWrite[]> {
  const statement = `SELECT key, value, batch::float8 FROM gateway_entry WHERE (batch, key) > ($1, $2) ORDER BY batch, key LIMIT ${pageRows}`;
  // A key is never empty: the first page begins with the first entry of the batch that follows.
  let [batch, key]: [number, Buffer] = [after + 1, Buffer.alloc(0)];
  for (;;) {
    const { rows } = await client.query<EntryWrite & { readonly batch: number }>(statement, [batch, key]);
    const last = rows.at(-1);
    if (last === undefined) return;
    yield rows;
    ({ batch, key } = last);
  }
}

/** The end of a lease that begins now, by the database's clock. `place`: of the parameter with its milliseconds. */
function untilIn(place: number): string {
  return `clock_timestamp() + $${place}::float8 * interval '1 millisecond'`;
}

function only<Row>(rows: readonly Row[]): Row {
  const [row] = rows;
  if (row === undefined) throw new GatewayError("STATE_UNUSABLE", "the table `gateway_lease` has no row");
  return row;
}

function unreachable(cause: unknown): never {
  throw new GatewayError("EVIDENCE_UNAVAILABLE", "the database of the replicas did not answer; see the log", { cause });
}
