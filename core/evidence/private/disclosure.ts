import type { BatchOperation } from "../../action/commit-hook.ts";
import { GatewayError } from "../../action/error.ts";
import type { Random } from "../../action/id.ts";
import { cipherKeyBytes, openBytes, sealBytes, type WrappingKey } from "../key/wrapping-key.ts";
import { dataKeyKey, dataKeyRange, disclosureKey, type EvidenceStore, seqIn } from "../record/key-space.ts";
import type { ActionRecord } from "../record/record.ts";
import type { Reader } from "../record/store-view.ts";
import { fieldsDigest, type PrivateField, type PrivateMember, privateMembers } from "./private-field.ts";

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
): BatchOperation[] {
  const dataKey = random(cipherKeyBytes);
  const entry = sealBytes(dataKey, entryPlace(place), Buffer.from(JSON.stringify(disclosure)), random);
  return [
    { type: "put", key: disclosureKey(place.tenant, place.seq), value: entry },
    { type: "put", key: dataKeyKey(place.tenant, place.seq), value: key.wrap(dataKey, keyPlace(place), random) },
  ];
}

/**
 * The private fields that a record commits to, as far as they are kept.
 * Throws EVIDENCE_UNAVAILABLE where they are lost, damaged, or not those of the record: that is never shown as if they
 * had been erased.
 */
export async function discloseRecord(reader: Reader, key: WrappingKey, record: ActionRecord): Promise<Disclosure> {
  const committed = { arguments: ownArguments(record), output: record.action.output_digest };
  const disclosure = (await readDisclosure(reader, key, record)) ?? {};
  for (const member of privateMembers) {
    const fields = disclosure[member];
    const digest = fields === undefined ? undefined : fieldsDigest(fields.map(({ commitment }) => commitment));
    if (digest !== committed[member]) throw damaged(record);
  }
  return disclosure;
}

/** An outcome repeats its decision's digest; the fields lie with the decision. */
function ownArguments({ kind, action }: ActionRecord): string | undefined {
  return kind === "decision" ? action.arguments_digest : undefined;
}

/**
 * What the private entry of a record holds, whatever the record says; undefined where there is no entry.
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
  throw damaged(place);
}

function damaged({ tenant, seq }: DisclosurePlace): GatewayError {
  return new GatewayError(
    "EVIDENCE_UNAVAILABLE",
    `the private fields of record ${seq} of tenant \`${tenant}\` are damaged`,
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
  const seq = seqIn(storeKey);
  return key.unwrap(wrapped, keyPlace({ tenant, chain, seq })) !== undefined;
}

function entryPlace({ chain, seq }: DisclosurePlace): string {
  return `evidence-disclosure-v1\n${chain}\n${seq}`;
}

function keyPlace({ chain, seq }: DisclosurePlace): string {
  return `evidence-data-key-v1\n${chain}\n${seq}`;
}
