import type { AbstractBatchOperation } from "abstract-level";
import { GatewayError } from "../action/error.ts";
import { copyPositionKey } from "../store/format.ts";
import type { Store } from "../store/open.ts";
import { decodeValue } from "../store/value-decoding.ts";
import { encodeValue } from "../store/value-encoding.ts";
import type { EntryWrite, LeaseClaim, LeaseRow, ReplicaDatabase } from "./database.ts";

/** A database of bytes, whatever the encodings are that its users see. */
export interface Bytes {
  get(key: string): Promise<Buffer | undefined>;
  /** Returns whether there is any key. */
  isEmpty(): Promise<boolean>;
  write(operations: readonly BytesOperation[], sync?: boolean): Promise<void>;
  /** Deletes every entry but one. */
  clearBut(key: string): Promise<void>;
}

export type BytesOperation =
  | { readonly type: "put"; readonly key: Buffer; readonly value: Buffer }
  | { readonly type: "del"; readonly key: Buffer };

const positionBytes = Buffer.from(copyPositionKey);

/** The place of a copy in the batches of a database. */
export interface Position {
  readonly database: string;
  /** Every batch up to this one is in the copy; −1: it is being cleared. */
  batch: number;
}

/**
 * Brings the entries of a folder to where the database is. With a claim they are exactly that when this resolves, for as long as
 * the claim is held; without one, what they were at some moment since.
 *
 * Throws STATE_UNUSABLE for a folder with entries of no replica or of another database, and for one that is ahead of the
 * database: that one lost what was acknowledged.
 */
export async function catchUp(bytes: Bytes, database: ReplicaDatabase, claim: LeaseClaim | null): Promise<Position> {
  const known = await database.readLease();
  const position = (await readPosition(bytes)) ?? (await beginCopy(bytes, known));
  checkPosition(position, known);
  if (position.batch < known.horizon) {
    // From nothing: what was deleted since is no longer listed. Until all is read, the position says so.
    await bytes.write([positionOperation(known.database, -1)], true);
    await bytes.clearBut(copyPositionKey);
    position.batch = 0;
  }
  let reached = position;
  await database.readChanges(position.batch, claim, async ({ lease, pages }) => {
    if (position.batch > 0 && position.batch < lease.horizon) {
      throw new GatewayError("EVIDENCE_UNAVAILABLE", "the copy fell behind while it was read; it is read anew");
    }
    for await (const page of pages) await bytes.write(page.map(operationOf));
    await bytes.write([positionOperation(lease.database, lease.batch)], true);
    reached = { database: lease.database, batch: lease.batch };
  });
  return reached;
}

async function beginCopy(bytes: Bytes, { database }: LeaseRow): Promise<Position> {
  if (!(await bytes.isEmpty())) {
    const text =
      "expected an empty data folder or the copy of a replica, got the state of a gateway without a database; " +
      "`gateway store migrate` takes it into the database";
    throw new GatewayError("STATE_UNUSABLE", text);
  }
  await bytes.write([positionOperation(database, 0)]);
  return { database, batch: 0 };
}

/** Returns the operations of a batch, and with it how far the copy is then. */
export function batchOperations(
  writes: readonly EntryWrite[],
  database: string,
  batch: number,
): readonly BytesOperation[] {
  return [...writes.map(operationOf), positionOperation(database, batch)];
}

/** Makes a folder the copy of a database that has the same entries. */
export async function keepPosition(bytes: Bytes, { database, batch }: LeaseRow): Promise<void> {
  await bytes.write([positionOperation(database, batch)]);
}

/** Makes the copy a folder that a gateway without a database goes on with. Durable, with all before it, when it resolves. */
export async function endCopy(bytes: Bytes): Promise<void> {
  await bytes.write([{ type: "del", key: positionBytes }], true);
}

const asBytes = { keyEncoding: "buffer", valueEncoding: "buffer" } as const;

/** The entries of an open store, past its encoding. */
export function bytesOf(store: Store): Bytes {
  return {
    get: (key) => store.get<string, Buffer>(key, { valueEncoding: "buffer" }),
    isEmpty: async () => (await store.keys({ limit: 1 }).all()).length === 0,
    write: (operations, sync = false) => {
      const options = { ...asBytes, sync };
      return store.batch<Buffer, Buffer>(operations as AbstractBatchOperation<typeof store, Buffer, Buffer>[], options);
    },
    clearBut: async (key) => {
      await store.clear({ lt: key });
      await store.clear({ gt: key });
    },
  };
}

async function readPosition(bytes: Bytes): Promise<Position | undefined> {
  const found = await bytes.get(copyPositionKey);
  return found === undefined ? undefined : (JSON.parse(decodeValue(found)) as Position);
}

function checkPosition(position: Position, { database, batch }: LeaseRow): void {
  if (position.database !== database) {
    const text =
      "the data folder is the copy of another database; choose an empty one, or the database that it belongs to";
    throw new GatewayError("STATE_UNUSABLE", text);
  }
  if (position.batch > batch) {
    const text =
      `the database is older than the data folder: expected batch ${position.batch} or later, got ${batch}. It lost what was ` +
      "acknowledged; put the newest database back. To go on with this one, choose an empty data folder: approvals used since " +
      "could be used again";
    throw new GatewayError("STATE_UNUSABLE", text);
  }
}

function operationOf({ key, value }: EntryWrite): BytesOperation {
  return value === null ? { type: "del", key } : { type: "put", key, value };
}

function positionOperation(database: string, batch: number): BytesOperation {
  const position: Position = { database, batch };
  return { type: "put", key: positionBytes, value: Buffer.from(encodeValue(JSON.stringify(position))) };
}
