import { createHash } from "node:crypto";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { GatewayError } from "../action/error.ts";
import type { Random } from "../action/id.ts";
import { HighWaterFile } from "../evidence/chain/high-water.ts";
import { copyPositionKey } from "../store/format.ts";
import type { Store } from "../store/open.ts";
import type { Entry, LeaseClaim, ReplicaDatabase } from "./database.ts";
import { Lease } from "./lease.ts";
import { bytesOf, catchUp, endCopy, keepPosition } from "./local-copy.ts";
import { SharedKeys } from "./shared-key.ts";

export interface MigrationOptions {
  readonly dataDir: string;
  /** The store of the data folder, past its format. */
  readonly level: Store;
  readonly database: ReplicaDatabase;
  readonly secret: string;
  readonly random: Random;
  /** Milliseconds of a clock that only grows. */
  readonly elapsedMs: () => number;
  /** Called now and then with the entries so far. */
  readonly onProgress: (entries: number) => void;
}

/** Every entry of a store, as both sides have it. */
export interface Migrated {
  readonly entries: number;
  /** `sha256:<hex>` over the lengths and bytes of all keys and values, in the order of the keys. */
  readonly digest: string;
}

const leaseMs = 5_000;
const retryMs = 500;
/** Longer than the lease of a migration and the default one of a replica. */
const claimTries = 24;
const maxBatchBytes = 4_194_304;
const maxBatchEntries = 2_000;

/**
 * Takes the store of a data folder into an empty database, with its marks and its sealed keys; the folder is a copy of it then.
 * A migration that was interrupted goes on where it stopped. Throws STATE_UNUSABLE where a replica runs, where the database holds
 * anything else, and where the two differ in the end.
 */
export async function migrateToDatabase(options: MigrationOptions): Promise<Migrated> {
  const { level, database, dataDir, secret, random } = options;
  return whileClaimed(options, async (claim) => {
    const { use, batch } = await database.readLease();
    if (use === "moved" || (use === "serving" && batch > 0))
      throw refused("expected an empty database, got one that is used");
    await database.setUse(claim, "loading");
    await uploadEntries(options, claim);
    const marks = await HighWaterFile.open(join(dataDir, "high-water"));
    await database.raiseMarks(claim, [...marks.marks.values()]).finally(() => marks.close());
    await new SharedKeys({ folder: join(dataDir, "keys"), database, secret, random }).addAll(claim);
    const migrated = await compare(options);
    await database.setUse(claim, "serving");
    await keepPosition(bytesOf(level), await database.readLease());
    return migrated;
  });
}

/**
 * Takes the store of a database back into a data folder, a replica's copy or an empty one, that a gateway without a database
 * goes on with; the database serves no more. Throws STATE_UNUSABLE where a replica runs, and where the two differ in the end.
 */
export async function migrateToFolder(options: MigrationOptions): Promise<Migrated> {
  const { level, database, dataDir, secret, random } = options;
  return whileClaimed(options, async (claim) => {
    if ((await database.readLease()).use === "loading") throw refused("the database has a part of a store only");
    const bytes = bytesOf(level);
    await catchUp(bytes, database, claim);
    await new SharedKeys({ folder: join(dataDir, "keys"), database, secret, random }).fetch();
    const migrated = await compare(options);
    const marks = await HighWaterFile.open(join(dataDir, "high-water"));
    await marks.advance(await database.readMarks()).finally(() => marks.close());
    // First: of a folder and a database that both go on, each would lose what the other acknowledged.
    await database.setUse(claim, "moved");
    await endCopy(bytes);
    return migrated;
  });
}

/** Holds the lease meanwhile: nobody serves from the database, and no other migration runs. */
async function whileClaimed(
  { database, elapsedMs }: MigrationOptions,
  use: (claim: LeaseClaim) => Promise<Migrated>,
): Promise<Migrated> {
  const askedMs = elapsedMs();
  const claim = await claimLease(database);
  // Where another replica has the lease, the next write rejects.
  const lease = new Lease({ database, claim, leaseMs, elapsedMs, onLost: () => undefined }, askedMs);
  try {
    return await use(claim);
  } finally {
    await lease.release();
  }
}

/** Takes the lease; waits for one whose replica or migration was killed, which ends by itself. */
async function claimLease(database: ReplicaDatabase): Promise<LeaseClaim> {
  for (let triesLeft = claimTries; ; triesLeft--) {
    const claim = await database.claim("", leaseMs);
    if (claim !== undefined) return claim;
    const { address } = await database.readLease();
    if (triesLeft === 0) {
      const by = address === "" ? "another migration has" : `the replica at \`${address}\` has`;
      throw refused(`${by} the lease of the database; stop every replica first`);
    }
    await sleep(retryMs);
  }
}

async function uploadEntries({ level, database, onProgress }: MigrationOptions, claim: LeaseClaim): Promise<void> {
  const last = await database.readLastKey();
  let { batch } = await database.readLease();
  let writes: Entry[] = [];
  let size = 0;
  let count = 0;
  for await (const entry of entriesOf(level, last)) {
    writes.push(entry);
    size += entry.key.length + entry.value.length;
    count++;
    if (writes.length < maxBatchEntries && size < maxBatchBytes) continue;
    batch = await database.commit(claim, batch, writes);
    onProgress(count);
    writes = [];
    size = 0;
  }
  if (writes.length > 0) await database.commit(claim, batch, writes);
}

/** Throws where folder and database are not the same, byte for byte. */
async function compare({ level, database }: MigrationOptions): Promise<Migrated> {
  const [local, remote] = [await digestOf(entriesOf(level)), await digestOf(entriesIn(database))];
  if (local.digest === remote.digest) return local;
  const found = `${local.entries} entries in the folder, ${remote.entries} in the database`;
  throw refused(`the data folder and the database differ (${found}); begin with an empty database`);
}

async function digestOf(entries: AsyncIterable<Entry>): Promise<Migrated> {
  const hash = createHash("sha256");
  let count = 0;
  for await (const { key, value } of entries) {
    const lengths = Buffer.alloc(8);
    lengths.writeUInt32BE(key.length, 0);
    lengths.writeUInt32BE(value.length, 4);
    hash.update(lengths).update(key).update(value);
    count++;
  }
  return { entries: count, digest: `sha256:${hash.digest("hex")}` };
}

/** The entries of a folder in the order of their keys, without how far it is as a copy. */
async function* entriesOf(level: Store, after?: Buffer): AsyncIterable<Entry> {
  const range = {
    keyEncoding: "buffer",
    valueEncoding: "buffer",
    ...(after === undefined ? {} : { gt: after }),
  } as const;
  for await (const [key, value] of level.iterator<Buffer, Buffer>(range)) {
    if (key.toString() !== copyPositionKey) yield { key, value };
  }
}

async function* entriesIn(database: ReplicaDatabase): AsyncIterable<Entry> {
  for (let after = Buffer.alloc(0); ; ) {
    const page = await database.readEntries(after);
    yield* page;
    const last = page.at(-1);
    if (last === undefined) return;
    after = Buffer.from(last.key);
  }
}

function refused(text: string): GatewayError {
  return new GatewayError("STATE_UNUSABLE", text);
}
