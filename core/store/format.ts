import type { AbstractBatchOperation, AbstractPutOptions } from "abstract-level";
import { GatewayError } from "../action/error.ts";
import {
  familyPrefixes,
  type KeyRange,
  lastPart,
  listTenants,
  rangeOf,
  type StringLevel,
  tenantPrefix,
} from "./key-range.ts";
import { rewriteRange } from "./rewrite.ts";

/** The abstract interface does not name `sync`; both engines take it. */
const durably: AbstractPutOptions<string, string> & { readonly sync: true } = { sync: true };

/** The key of the version of a store. */
export const formatKey = "format";
/** The key under which a copy of a database keeps how far it is: no entry of the store itself. */
export const copyPositionKey = "replica-position";

/** On disk, records with their private fields lie in a database of their own; large private fields in pieces. */
const format = "5";
/** The same without pieces. */
const wholeFormat = "4";
/** The same keys and values in one database. */
const singleFormat = "3";
/** Amid the step to the keys of both: no version but one that goes on with the step may read the store. */
const movingFormat = "3 from 2";
/** On disk, versions of which the engine moves the records to a database of their own when it opens them. */
export const singleFormats: readonly string[] = [singleFormat, movingFormat];
/** The layouts before: records among their tenant's other keys, and in the first one every value as UTF-8, which is read as it is. */
const formerFormats = ["1", "2", movingFormat];

const everyKey: KeyRange = { gte: "!", lt: "\x7f" };

const maxBatchBytes = 4_194_304;
const maxBatchEntries = 2_000;
const entriesPerReport = 50_000;

/** Called now and then with the number of entries that were moved so far, and once all are. */
export type OnMoved = (entries: number) => void;

/**
 * Marks a store that is empty with the format, before anything else is written, and brings one of an earlier format to it:
 * durably and in steps, so that one that was interrupted goes on at the next opening. Refuses a store that another program or
 * version has written, unchanged.
 */
export async function takeFormat(store: StringLevel, onMoved: OnMoved = () => undefined): Promise<void> {
  const found = await store.get(formatKey);
  if (found === format) return;
  if (found === singleFormat || found === wholeFormat) return store.put(formatKey, format, durably);
  if (found !== undefined && formerFormats.includes(found)) return moveFamilies(store, onMoved);
  const first = (await store.keys({ limit: 2 }).all()).find((key) => key !== copyPositionKey);
  if (first === undefined) return store.put(formatKey, format, durably);
  const got = found === undefined ? "none" : `\`${found.slice(0, 32)}\``;
  throw new GatewayError(
    "STATE_UNUSABLE",
    `expected store format \`${format}\`, got ${got}; open it with the version that wrote it, or choose another folder`,
  );
}

async function moveFamilies(store: StringLevel, onMoved: OnMoved): Promise<void> {
  await store.put(formatKey, movingFormat, durably);
  let [moved, reported] = [0, 0];
  const take = (entries: number): void => {
    moved += entries;
    if (moved - reported < entriesPerReport) return;
    reported = moved;
    onMoved(moved);
  };
  for (const tenant of await listTenants(store)) {
    const own = tenantPrefix(tenant);
    for (const [family, prefix] of Object.entries(familyPrefixes)) {
      await moveRange(store, rangeOf(`${own}${family}/`), prefix + own, take);
    }
  }
  // Nothing is left in the files of where they lay: an erasure looks for private fields where they are.
  await rewriteRange(store, everyKey);
  await store.put(formatKey, format, durably);
  onMoved(moved);
}

/** Moves the bytes of values, not what they say, to keys behind `after`; `onBatch` gets the number of entries in each batch. */
async function moveRange(store: StringLevel, range: KeyRange, after: string, onBatch: OnMoved): Promise<void> {
  const asBytes = { valueEncoding: "buffer" } as const;
  let moves: AbstractBatchOperation<StringLevel, string, Buffer>[] = [];
  let bytes = 0;
  const write = async (): Promise<void> => {
    await store.batch<string, Buffer>(moves, asBytes);
    onBatch(moves.length / 2);
    [moves, bytes] = [[], 0];
  };
  for await (const [key, value] of store.iterator<string, Buffer>({ ...range, ...asBytes })) {
    moves.push({ type: "put", key: `${after}${lastPart(key)}`, value }, { type: "del", key });
    bytes += value.length;
    if (bytes >= maxBatchBytes || moves.length >= 2 * maxBatchEntries) await write();
  }
  if (moves.length > 0) await write();
}
