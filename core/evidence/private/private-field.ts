import type { ActionFacts } from "../../action/action-fact.ts";
import { canonicalJson, canonicalSha256, canonicalSha256InTurns, sha256Hex } from "../../action/canonical-json.ts";
import type { BatchOperation } from "../../action/commit-hook.ts";
import type { ActionEnvelope } from "../../action/envelope.ts";
import { GatewayError } from "../../action/error.ts";
import { compileGlob, type Glob } from "../../action/glob.ts";
import type { Random } from "../../action/id.ts";
import { isJsonObject, type Json } from "../../action/json.ts";
import type { Turns } from "../../action/turns.ts";
import { decodeValue } from "../../store/value-decoding.ts";
import { encodePieces } from "../../store/value-encoding.ts";
import { cipherKeyBytes, encryptBytes, nonceBytes, openBytes, type WrappingKey } from "../key/wrapping-key.ts";
import { type EvidenceStore, partRange, recordKey, seqIn } from "../record/key-space.ts";
import type { ActionRecord } from "../record/record.ts";
import type { Reader } from "../record/store-view.ts";
import { openPieces, pieceKeys } from "./entry-piece.ts";

/** The parts of an action whose values lie apart from the chain. */
export const privateMembers = ["arguments", "output", "facts"] as const;
export type PrivateMember = (typeof privateMembers)[number];

/**
 * A field as it is stored apart: whole, or as much of it as the policy keeps. Only the commitment is left of a field
 * that was never stored, and of one that was erased.
 */
export interface PrivateField {
  readonly commitment: string;
  readonly name?: string;
  readonly salt?: string;
  readonly value?: Json;
}

/** The policy of which private values are stored. */
export interface FieldPolicy {
  /** False: commitments and salts alone. */
  readonly storeValues: boolean;
  /** False: a session has its id alone, in records and lists. */
  readonly storeLabels: boolean;
  /** Globs over `<tool>:<field>`: of a field that fits one, the commitment alone is stored. */
  readonly redactFields: readonly string[];
}

/** The fields of one value as an entry keeps them, in the order of their commitments, and the digest that a record carries. */
export interface HiddenValue {
  readonly digest: string;
  readonly fields: readonly KeptField[];
}

/** Each field costs a digest on the path of the action; a value with more fields is one field. */
const maxFields = 256;
/** Characters of the JSON of facts that are kept: they repeat arguments, a command line more than once. */
const maxFactsText = 16_384;
const saltBytes = 16;
/** Characters beyond which a text is kept as it is: `encodePieces` takes no more than a third of it. */
const maxEncodable = 786_432;
const entryPurpose = "evidence-disclosure-v1";
/** A data key that is stored beside its entry, wrapped, as earlier versions did; and one that is derived. */
const dataKeyPurpose = "evidence-data-key-v1";
const derivedKeyPurpose = "evidence-data-key-v2";

/** Splits private values into fields and commits to each under a salt of its own. */
export class FieldHider {
  readonly #storeValues: boolean;
  readonly #redacted: readonly Glob[];
  readonly #random: Random;

  constructor(policy: FieldPolicy, random: Random) {
    this.#storeValues = policy.storeValues;
    this.#redacted = policy.redactFields.map(compileGlob);
    this.#random = random;
  }

  /**
   * Hides a value of a call of `tool`. The members of an object are a field each; anything else, and an object of more
   * than 256 members, is one field named "". Nothing but the commitment is kept of a value that must not be kept.
   */
  hide(tool: string, value: Json, isKept = true): HiddenValue {
    const fields = this.#split(tool, value, isKept);
    return this.#commit(fields, fields.map(fieldCommitment));
  }

  /** The same, in turns. */
  async hideInTurns(tool: string, value: Json, turns: Turns, isKept = true): Promise<HiddenValue> {
    const fields = this.#split(tool, value, isKept);
    const commitments: string[] = [];
    for (const field of fields) commitments.push(await fieldCommitmentInTurns(field, turns));
    return this.#commit(fields, commitments);
  }

  #split(tool: string, value: Json, isKept: boolean): readonly SplitField[] {
    const all = isJsonObject(value) ? Object.entries(value) : null;
    const members = isKept && all !== null && all.length <= maxFields ? all : null;
    const hasGlobs = this.#redacted.length > 0;
    // One field that holds many is as private as the most private of them.
    const isOneRedacted =
      members === null &&
      (!isKept || this.#isRedacted(tool, "") || all?.some(([name]) => this.#isRedacted(tool, name)) === true);
    const fields: SplitField[] = [];
    for (const [name, member] of members ?? [["", value] as const]) {
      const bytes = this.#random(saltBytes);
      const salt = Buffer.from(bytes.buffer, bytes.byteOffset, saltBytes).toString("base64url");
      const isRedacted = members === null ? isOneRedacted : hasGlobs && this.#isRedacted(tool, name);
      fields.push({ name, salt, value: member, isRedacted });
    }
    return fields;
  }

  #commit(fields: readonly SplitField[], commitments: readonly string[]): HiddenValue {
    const hidden = new Map<string, KeptField>();
    for (const [at, { name, salt, value, isRedacted }] of fields.entries()) {
      const commitment = commitments[at] as string;
      if (isRedacted) hidden.set(commitment, { commitment });
      else hidden.set(commitment, this.#storeValues ? { name, salt, value } : { commitment, salt });
    }
    const sorted = commitments.toSorted();
    const kept: KeptField[] = [];
    for (const commitment of sorted) kept.push(hidden.get(commitment) as KeptField);
    return { digest: fieldsDigest(sorted), fields: kept };
  }

  /**
   * Hides the facts of an action but their effect, which its record says. They repeat arguments: nothing is kept of them
   * where an argument is not, nor where they are longer than 16,384 characters. A surrogate that a parser left alone is
   * replaced by U+FFFD.
   */
  hideFacts(action: ActionEnvelope, facts: ActionFacts): HiddenValue {
    const { value, isKept } = this.#readFacts(action, facts);
    return this.hide(action.tool, value, isKept);
  }

  /** The same, in turns. */
  async hideFactsInTurns(action: ActionEnvelope, facts: ActionFacts, turns: Turns): Promise<HiddenValue> {
    const { value, isKept } = this.#readFacts(action, facts);
    return this.hideInTurns(action.tool, value, turns, isKept);
  }

  #readFacts(
    { tool, arguments: args }: ActionEnvelope,
    { effect: _, ...facts }: ActionFacts,
  ): { readonly value: Json; readonly isKept: boolean } {
    const names = isJsonObject(args) ? ["", ...Object.keys(args)] : [""];
    const text = JSON.stringify(facts);
    const isKept = text.length <= maxFactsText && !names.some((name) => this.#isRedacted(tool, name));
    // A lone surrogate comes out as an escape.
    const value = text.includes("\\ud") ? JSON.parse(text, wellFormed) : facts;
    return { value: value as Json, isKept };
  }

  #isRedacted(tool: string, name: string): boolean {
    for (const glob of this.#redacted) if (glob.test(`${tool}:${name}`)) return true;
    return false;
  }
}

function wellFormed(_name: string, value: unknown): unknown {
  return typeof value === "string" ? value.toWellFormed() : value;
}

/** A private value under its name, with the salt (16 random bytes, base64url) that keeps it from being guessed. */
interface SaltedField {
  readonly name: string;
  readonly salt: string;
  readonly value: Json;
}

/** One that is to be hidden; of a redacted one the commitment alone is kept. */
interface SplitField extends SaltedField {
  readonly isRedacted: boolean;
}

/** The text that a commitment is over, and that discloses it: the RFC 8785 text of `["field-v1", salt, name, value]`. */
export function fieldText({ name, salt, value }: SaltedField): string {
  return canonicalJson(["field-v1", salt, name, value]);
}

/** SHA-256 (hex) of a field's text. */
export function fieldCommitment({ name, salt, value }: SaltedField): string {
  return canonicalSha256(["field-v1", salt, name, value]);
}

function fieldCommitmentInTurns({ name, salt, value }: SaltedField, turns: Turns): Promise<string> {
  return canonicalSha256InTurns(["field-v1", salt, name, value], turns);
}

/**
 * The digest of all fields together in a record: `sha256:<hex>` over the RFC 8785 bytes of `["fields-v1", commitments]`,
 * the commitments sorted. A field can be withheld, or erased, and its commitment still completes the digest.
 */
export function fieldsDigest(commitments: readonly string[]): string {
  return `sha256:${sha256Hex(canonicalJson(["fields-v1", commitments.toSorted()]))}`;
}

/** The private fields of one record, by the member they belong to. */
export type Disclosure = { readonly [member in PrivateMember]?: readonly PrivateField[] };

/** A record of a chain, as the place that its private fields are sealed for. */
export interface DisclosurePlace {
  readonly tenant: string;
  readonly chain: string;
  readonly seq: number;
}

/** The private fields of a record, and what seals them: their text, a data key of its own with a nonce, and their place. */
export interface PrivateEntry {
  /** Key and nonce, one character for each byte. */
  readonly secret: string;
  readonly place: string;
  readonly text: string;
}

/**
 * Prepares the private fields of a record to be sealed under a data key of its own. Once the entry is overwritten, nothing of
 * the former one can be read: the key alone opens nothing.
 */
export function privateEntry(key: WrappingKey, place: DisclosurePlace, text: string, random: Random): PrivateEntry {
  const dataKey = Buffer.from(key.dataKey(sealedPlace(derivedKeyPurpose, place))).toString("latin1");
  const nonce = Buffer.from(random(nonceBytes)).toString("latin1");
  return { secret: dataKey + nonce, place: sealedPlace(entryPurpose, place), text };
}

/** Seals an entry: the bytes of which the store keeps the base64, after `lead` bytes of 0. */
export function sealEntry({ secret, place, text }: PrivateEntry, lead = 0): Buffer {
  const bytes = Buffer.from(secret, "latin1");
  const [key, nonce] = [bytes.subarray(0, cipherKeyBytes), bytes.subarray(cipherKeyBytes)];
  const encoded = text.length > maxEncodable ? undefined : encodePieces(text);
  return encryptBytes(key, nonce, place, encoded ?? text, lead);
}

/** Seals the private fields of a record at once. */
export function sealDisclosure(
  key: WrappingKey,
  place: DisclosurePlace,
  disclosure: Disclosure,
  random: Random,
): BatchOperation {
  const value = sealEntry(privateEntry(key, place, disclosureText(disclosure), random)).toString("base64");
  return { type: "put", key: recordKey(place.tenant, place.seq, "disclosure"), value };
}

/** A field as it lies in an entry: one that is there in full has no commitment, which follows from the rest. */
export type KeptField = Omit<PrivateField, "commitment"> & { readonly commitment?: string };

type KeptMembers = { readonly [member in PrivateMember]?: readonly KeptField[] };

/** The text of the private fields of a record, as an entry seals it. */
function disclosureText(disclosure: Disclosure): string {
  const kept: { [member in PrivateMember]?: readonly KeptField[] } = {};
  for (const member of privateMembers) {
    const fields = disclosure[member];
    if (fields === undefined) continue;
    const own: KeptField[] = [];
    for (const field of fields) {
      const { name, salt, value } = field;
      const isWhole = name !== undefined && salt !== undefined && value !== undefined;
      own.push(isWhole ? { name, salt, value } : field);
    }
    kept[member] = own;
  }
  return JSON.stringify(kept);
}

/** The text of an entry whose fields are in pieces. */
interface PiecedEntry {
  /** base64url */
  readonly pieces_key: string;
  /** Their number: a place that says fewer is noticed. */
  readonly pieces: number;
}

/** Returns the text that an entry seals in place of fields that are in so many pieces under a key. */
export function piecedText(key: Uint8Array, pieces: number): string {
  const entry: PiecedEntry = { pieces_key: Buffer.from(key).toString("base64url"), pieces };
  return JSON.stringify(entry);
}

/** Parses the text of an entry, of which earlier versions wrote every commitment. */
function disclosureOf(kept: KeptMembers): Disclosure {
  const disclosure: { [member in PrivateMember]?: readonly PrivateField[] } = {};
  for (const member of privateMembers) {
    const fields = kept[member];
    if (fields !== undefined) disclosure[member] = fields.map(withCommitment);
  }
  return disclosure;
}

function withCommitment(field: KeptField): PrivateField {
  if (field.commitment !== undefined) return { ...field, commitment: field.commitment };
  if (!isSalted(field)) throw new TypeError("private fields: expected a commitment, or all that it is over");
  return { commitment: fieldCommitment(field), ...field };
}

function isSalted<F extends KeptField>(field: F): field is F & SaltedField {
  return field.name !== undefined && field.salt !== undefined && field.value !== undefined;
}

/**
 * Returns the private fields that a record commits to, as far as they are kept. Throws EVIDENCE_UNAVAILABLE where they
 * are lost, damaged, or not those of the record: that must not look like an erasure.
 */
export async function discloseRecord(reader: Reader, key: WrappingKey, record: ActionRecord): Promise<Disclosure> {
  const { action, kind } = record;
  // An outcome repeats the digests of its decision's arguments and facts; the fields lie with the decision.
  const committed = {
    arguments: kind === "decision" ? action.arguments_digest : undefined,
    output: action.output_digest,
    facts: kind === "decision" ? action.facts?.digest : undefined,
  };
  const disclosure = (await readDisclosure(reader, key, record)) ?? {};
  for (const member of privateMembers) {
    const commitments = disclosure[member]?.map(({ commitment }) => commitment);
    if ((commitments && fieldsDigest(commitments)) !== committed[member]) throw damaged(record);
  }
  return disclosure;
}

/**
 * Returns the private entry of a record, unchecked against the record; undefined where there is no entry.
 * Throws EVIDENCE_UNAVAILABLE for an entry that its keys do not open.
 */
export async function readDisclosure(
  reader: Reader,
  key: WrappingKey,
  place: DisclosurePlace,
): Promise<Disclosure | undefined> {
  const entry = await reader.get(recordKey(place.tenant, place.seq, "disclosure"));
  const wrapped = await reader.get(recordKey(place.tenant, place.seq, "data-key"));
  if (entry === undefined && wrapped === undefined) return undefined;
  const plain = entry === undefined ? undefined : openEntry(key, place, entry, wrapped);
  const kept = plain && (await readKept(reader, place, plain));
  if (kept !== undefined) return disclosureOf(kept);
  throw damaged(place);
}

/** Reads what an entry says, and the pieces that it has the key of; undefined where these are lost or damaged. */
async function readKept(
  reader: Reader,
  { tenant, seq }: DisclosurePlace,
  entry: Uint8Array,
): Promise<KeptMembers | undefined> {
  const said = JSON.parse(decodeValue(entry)) as KeptMembers | PiecedEntry;
  if (!("pieces_key" in said)) return said;
  const places = pieceKeys(tenant, (await reader.get(recordKey(tenant, seq, "pieces"))) ?? "");
  if (places.length !== said.pieces) return;
  const bytes = await openPieces(reader, Buffer.from(said.pieces_key, "base64url"), places);
  return bytes && (JSON.parse(Buffer.from(bytes).toString()) as KeptMembers);
}

/** Opens an entry; `wrapped` is its data key where earlier versions stored one. Undefined where its keys do not open it. */
function openEntry(
  key: WrappingKey,
  place: Pick<DisclosurePlace, "chain" | "seq">,
  entry: string,
  wrapped: string | undefined,
): Buffer | undefined {
  const dataKey =
    wrapped === undefined
      ? key.dataKey(sealedPlace(derivedKeyPurpose, place))
      : key.unwrap(wrapped, sealedPlace(dataKeyPurpose, place));
  return dataKey && openBytes(dataKey, sealedPlace(entryPurpose, place), entry);
}

function damaged({ tenant, seq }: DisclosurePlace): GatewayError {
  return new GatewayError(
    "EVIDENCE_UNAVAILABLE",
    `the private fields of record ${seq} of tenant \`${tenant}\` are damaged`,
  );
}

/** Entries of which the newest may be damaged, and still say whether a key is theirs. */
const triedEntries = 8;

/** Checks that a wrapping key is the one of the chain's private entries: that it opens one of the newest of them. */
export async function opensNewest(
  store: EvidenceStore,
  key: WrappingKey,
  tenant: string,
  chain: string,
): Promise<boolean> {
  const newest = await store.iterator({ ...partRange(tenant, "disclosure"), reverse: true, limit: triedEntries }).all();
  for (const [storeKey, entry] of newest) {
    const seq = seqIn(storeKey);
    const wrapped = await store.get(recordKey(tenant, seq, "data-key"));
    if (openEntry(key, { chain, seq }, entry, wrapped) !== undefined) return true;
  }
  return newest.length === 0;
}

/** The place that bytes are sealed for: their purpose, and the record they belong to. */
function sealedPlace(purpose: string, { chain, seq }: Pick<DisclosurePlace, "chain" | "seq">): string {
  return `${purpose}\n${chain}\n${seq}`;
}
