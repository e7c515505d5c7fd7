import { GatewayError } from "../kernel/error.ts";
import type { Random } from "../kernel/port.ts";
import { cipherKeyBytes, openBytes, sealBytes } from "./authenticated-cipher.ts";
import { dataKeyKey, dataKeyRange, disclosureKey, type EvidenceStore, type Operation } from "./key-space.ts";
import type { PrivateField, PrivateMember } from "./private-field.ts";
import type { Reader } from "./tile-reader.ts";
import type { WrappingKey } from "./wrapping-key.ts";

/** The private fields of one record, by the member they belong to. */
export type Disclosure = { readonly [member in PrivateMember]?: readonly PrivateField[] };

/** Whose chain, and which record of it. */
export interface DisclosurePlace {
  readonly tenant: string;
  readonly chain: string;
  readonly seq: number;
}

/**
 * The private entry of a record and the key it is encrypted with, a new one each time: once both are overwritten
 * nothing of what was there can be read. Both belong into one batch.
 */
export function sealDisclosure(
  key: WrappingKey,
  place: DisclosurePlace,
  disclosure: Disclosure,
  random: Random,
): Operation[] {
  const dataKey = random(cipherKeyBytes);
  const entry = sealBytes(dataKey, entryPlace(place), Buffer.from(JSON.stringify(disclosure)), random);
  return [
    { type: "put", key: disclosureKey(place.tenant, place.seq), value: entry },
    { type: "put", key: dataKeyKey(place.tenant, place.seq), value: key.wrap(dataKey, keyPlace(place), random) },
  ];
}

/**
 * The private fields of a record as far as they are kept; undefined where there is no entry.
 * Throws EVIDENCE_UNAVAILABLE for an entry that its keys do not open.
 */
export async function readDisclosure(
  reader: Reader,
  key: WrappingKey,
  place: DisclosurePlace,
): Promise<Disclosure | undefined> {
  const entry = await reader.get(disclosureKey(place.tenant, place.seq));
  const wrapped = await reader.get(dataKeyKey(place.tenant, place.seq));
  if (entry === undefined && wrapped === undefined) return undefined;
  const dataKey = wrapped === undefined ? undefined : key.unwrap(wrapped, keyPlace(place));
  const plain = entry === undefined || dataKey === undefined ? undefined : openBytes(dataKey, entryPlace(place), entry);
  if (plain !== undefined) return JSON.parse(plain.toString()) as Disclosure;
  throw new GatewayError(
    "EVIDENCE_UNAVAILABLE",
    `the private fields of record ${place.seq} of tenant \`${place.tenant}\` are damaged`,
  );
}

/** Whether a wrapping key is the one the chain's private entries were made with, by the newest of them. */
export async function fitsNewest(
  store: EvidenceStore,
  key: WrappingKey,
  tenant: string,
  chain: string,
): Promise<boolean> {
  const [newest] = await store.iterator({ ...dataKeyRange(tenant), reverse: true, limit: 1 }).all();
  if (newest === undefined) return true;
  const [storeKey, wrapped] = newest;
  const seq = Number(storeKey.slice(storeKey.lastIndexOf("/") + 1));
  return key.unwrap(wrapped, keyPlace({ tenant, chain, seq })) !== undefined;
}

function entryPlace({ chain, seq }: DisclosurePlace): string {
  return `evidence-disclosure-v1\n${chain}\n${seq}`;
}

function keyPlace({ chain, seq }: DisclosurePlace): string {
  return `evidence-data-key-v1\n${chain}\n${seq}`;
}
