import type { AbstractBatchPutOperation, AbstractPutOptions } from "abstract-level";
import { GatewayError } from "../action/error.ts";
import {
  growingFamilies,
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

const formatKey = "format";
/** The key under which a copy of a database keeps how far it is: no entry of the store itself. */
export const copyPositionKey = "replica-position";

/** The families of records lie behind all other keys; values are kept as `valueEncoding` says. */
const format = "3";
/** Amid the step to it: no version but one that goes on with the step may read the store. */
const movingFormat = "3 from 2";
/** The layouts before it: records among their tenant's other keys, and in the first one every value as UTF-8, which is read as it is. */
const formerFormats = ["1", "2", movingFormat];

/** All keys but those of the families. */
const others: readonly KeyRange[] = [
  { gte: "!", lt: "{" },
  { gte: "|", lt: "\x7f" },
];

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
    for (const family of growingFamilies) await moveFamily(store, tenant, family, take);
  }
  // Nothing is left in the files of where they lay: an erasure looks for private fields where they are.
  for (const range of others) await rewriteRange(store, range);
  await store.put(formatKey, format, durably);
  onMoved(moved);
}

/** Moves the bytes of values, not what they say; `onBatch` gets the number of entries in each batch. */
async function moveFamily(store: StringLevel, tenant: string, family: string, onBatch: OnMoved): Promise<void> {
  const asBytes = { valueEncoding: "buffer" } as const;
  const range = rangeOf(`${tenantPrefix(tenant)}${family}/`);
  const after = `{${family}}/${tenantPrefix(tenant)}`;
  let puts: AbstractBatchPutOperation<StringLevel, string, Buffer>[] = [];
  let former: string[] = [];
  let bytes = 0;
  const write = async (): Promise<void> => {
    const dels = former.map((key) => ({ type: "del", key }) as const);
    await store.batch<string, Buffer>([...puts, ...dels], asBytes);
    onBatch(puts.length);
    [puts, former, bytes] = [[], [], 0];
  };
  for await (const [key, value] of store.iterator<string, Buffer>({ ...range, ...asBytes })) {
    puts.push({ type: "put", key: `${after}${lastPart(key)}`, value });
    former.push(key);
    bytes += value.length;
    if (bytes >= maxBatchBytes || puts.length >= maxBatchEntries) await write();
  }
  if (puts.length > 0) await write();
}
