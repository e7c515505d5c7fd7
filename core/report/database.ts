import type pg from "pg";
import { GatewayError } from "../action/error.ts";
import { requireOptional } from "../config/optional-package.ts";
import { openPool } from "../store/postgresql.ts";
import type { UsageRow } from "../usage/usage-row.ts";
import { reportFormat, reportSchema } from "./schema.ts";

/** The last record of a chain that the tables have. */
export interface FeedPosition {
  /** −1 before the first record. */
  readonly seq: number;
  /** The id of that record; empty where it is not known. */
  readonly record: string;
}

/** A chain, as the tables name it. */
export interface FedChain {
  readonly tenant: string;
  readonly chain: string;
}

/** Two gateways that start at once must not both create the tables. Any number that nobody else locks. */
const schemaLock = 7_140_926_114;
const connectMs = 5_000;
const statementMs = 60_000;
/** Rows deleted by one statement. */
const deletedAtOnce = 10_000;

/** Moves the position first: whoever fed from the same position meanwhile has moved it, and nothing is inserted. */
const insertRecords = `
WITH moved AS (
  INSERT INTO gateway_feed AS feed (tenant, chain, seq, record) VALUES ($1, $2, $4, $5)
  ON CONFLICT (chain) DO UPDATE SET seq = excluded.seq, record = excluded.record WHERE feed.seq = $3
  RETURNING 1
), added AS (
  INSERT INTO gateway_record
  SELECT
    $2,
    (record ->> 'seq')::bigint,
    $1,
    record ->> 'kind',
    (record ->> 'time')::timestamptz,
    record #>> '{session,id}',
    record #>> '{principal,id}',
    record #>> '{action,tool}',
    record #>> '{action,target}',
    record #>> '{evaluation,decision}',
    record ->> 'effect',
    record
  FROM moved, jsonb_array_elements($6::jsonb) AS record
  ON CONFLICT DO NOTHING
)
SELECT 1 FROM moved`;

const usageColumns =
  "day date, principal text, provider text, model text, requests bigint, input_tokens bigint, output_tokens bigint, cached_input_tokens bigint";

/** Small rows of a day are merged at times: those that are gone from the store go from the table too. */
const replaceUsage = `
WITH given AS (SELECT * FROM jsonb_to_recordset($3::jsonb) AS given (${usageColumns})),
gone AS (
  DELETE FROM gateway_usage AS kept WHERE tenant = $1 AND day = $2 AND NOT EXISTS (
    SELECT 1 FROM given WHERE (given.principal, given.provider, given.model) = (kept.principal, kept.provider, kept.model)
  )
)
INSERT INTO gateway_usage SELECT $1, given.* FROM given
ON CONFLICT (tenant, day, principal, provider, model) DO UPDATE SET
  requests = excluded.requests,
  input_tokens = excluded.input_tokens,
  output_tokens = excluded.output_tokens,
  cached_input_tokens = excluded.cached_input_tokens`;

/**
 * The tables of reports, in PostgreSQL 13 or later, in a database of their own or beside others. Each method is one transaction;
 * one that rejects may have been committed, and may be repeated.
 */
export class ReportDatabase {
  readonly #pool: pg.Pool;
  readonly #connected = new Set<pg.PoolClient>();

  private constructor(pool: pg.Pool) {
    this.#pool = pool;
  }

  /** Loads the driver and connects to nothing yet. Throws CONFIG_INVALID where the driver is not installed. */
  static async load(url: string): Promise<ReportDatabase> {
    requireOptional("reports", "`reports.url_env`", "CONFIG_INVALID");
    const pool = await openPool({ url, max: 1, connectMs, statementMs });
    const database = new ReportDatabase(pool);
    pool.on("connect", (client) => database.#connected.add(client));
    pool.on("remove", (client) => database.#connected.delete(client));
    return database;
  }

  /** Creates the tables and views where they are missing. Throws STATE_UNUSABLE where another version has changed them. */
  async createTables(): Promise<void> {
    const client = await this.#pool.connect();
    try {
      await client.query("BEGIN");
      await client.query("SELECT pg_advisory_xact_lock($1)", [schemaLock]);
      await hasTables(client);
      await client.query(reportSchema);
      await client.query("COMMIT");
      client.release();
    } catch (cause) {
      // The connection ends, and with it the transaction.
      client.release(true);
      throw cause;
    }
  }

  /** False where the tables are missing. Throws STATE_UNUSABLE where another version has changed them. */
  hasTables(): Promise<boolean> {
    return hasTables(this.#pool);
  }

  async readPosition({ chain }: FedChain): Promise<FeedPosition> {
    const statement = "SELECT seq::float8, record FROM gateway_feed WHERE chain = $1";
    const { rows } = await this.#pool.query<FeedPosition>(statement, [chain]);
    return rows[0] ?? { seq: -1, record: "" };
  }

  /**
   * Inserts records, texts of JSON, behind a position and moves it to the last of them. Returns false, and inserts nothing, where
   * the position is another one.
   */
  async insertRecords(
    { tenant, chain }: FedChain,
    after: FeedPosition,
    to: FeedPosition,
    texts: readonly string[],
  ): Promise<boolean> {
    const values = [tenant, chain, after.seq, to.seq, to.record, `[${texts.map(withoutUnfit).join(",")}]`];
    return (await this.#pool.query(insertRecords, values)).rows.length > 0;
  }

  /** Deletes the records of a chain from `first` on, and has it fed from there again. */
  async deleteRecords({ chain }: FedChain, first: number): Promise<void> {
    const some = `SELECT chain, seq FROM gateway_record WHERE chain = $1 AND seq >= $2 LIMIT ${deletedAtOnce}`;
    const statement = `DELETE FROM gateway_record WHERE (chain, seq) IN (${some})`;
    while (((await this.#pool.query(statement, [chain, first])).rowCount ?? 0) > 0);
    await this.#pool.query("UPDATE gateway_feed SET seq = $2, record = '' WHERE chain = $1", [chain, first - 1]);
  }

  /** The last day of a tenant's usage, `2026-11-22`; undefined where there is none. */
  async readLastUsageDay(tenant: string): Promise<string | undefined> {
    const statement = "SELECT max(day)::text AS day FROM gateway_usage WHERE tenant = $1";
    const { rows } = await this.#pool.query<{ readonly day: string | null }>(statement, [tenant]);
    return rows[0]?.day ?? undefined;
  }

  /** Replaces a tenant's usage of one day. */
  async replaceUsage(tenant: string, day: string, rows: readonly UsageRow[]): Promise<void> {
    const given = rows.map(({ requests, input, output, cachedInput, principal, provider, model }) => ({
      ...{ day, principal, provider, model, requests },
      ...{ input_tokens: input, output_tokens: output, cached_input_tokens: cachedInput },
    }));
    await this.#pool.query(replaceUsage, [tenant, day, JSON.stringify(given)]);
  }

  /** Ends the connection at once: a statement under way rejects, so that no stop waits for a database that hangs. */
  async close(): Promise<void> {
    const ended = this.#pool.end();
    await Promise.all([...this.#connected].map((client) => (client as pg.PoolClient & pg.Client).end()));
    await ended;
  }
}

async function hasTables(client: Pick<pg.ClientBase, "query">): Promise<boolean> {
  const { rows: tables } = await client.query("SELECT 1 WHERE to_regclass('gateway_report') IS NOT NULL");
  if (tables.length === 0) return false;
  const { rows } = await client.query<{ readonly format: number }>("SELECT format FROM gateway_report");
  const found = rows[0]?.format;
  if (found === reportFormat) return true;
  const text = `expected report tables of format \`${reportFormat}\`, got \`${found}\`; use the version that made them, or another database`;
  throw new GatewayError("STATE_UNUSABLE", text);
}

/** PostgreSQL keeps no U+0000 in a text; the table has the replacement character there. */
function withoutUnfit(text: string): string {
  if (!text.includes("\\u0000")) return text;
  return text.replaceAll(/\\(?:u0000|.)/g, (found) => (found === "\\u0000" ? "\\ufffd" : found));
}
