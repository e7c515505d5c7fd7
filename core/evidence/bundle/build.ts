import { canonicalJson } from "../../action/canonical-json.ts";
import { GatewayError } from "../../action/error.ts";
import type { Json } from "../../action/json.ts";
import type { SigningKey } from "../../action/signing-key.ts";
import { fieldText, type PrivateMember } from "../private/private-field.ts";
import type { EvidenceRecord } from "../record/record.ts";
import type { ShownState } from "../state/state-store.ts";
import { type Checkpoint, parseCheckpoint } from "../tree/checkpoint.ts";
import { type BundleHead, type BundleSeal, bundleSchema, type Consistency, sealedBytes } from "./bundle-line.ts";

/** A field as a bundle shows it: whole, or its commitment alone. */
export type ShownField =
  | { readonly commitment: string }
  | { readonly commitment: string; readonly salt: string; readonly name: string; readonly value: Json };

/** The fields of one record, by the member they belong to. */
export type ShownFields = Partial<Readonly<Record<PrivateMember, readonly ShownField[]>>>;

/** A witness's note about an earlier size of the chain, and the proof that leads from there to the checkpoint. */
export interface Witnessed {
  readonly note: string;
  readonly proof: readonly string[];
}

/** The content of a bundle. */
export interface BundleContent {
  readonly tenant: string;
  readonly session: string;
  /** RFC 3339; taken before the checkpoint was read. */
  readonly created: string;
  /** The session's records and the events they rest on: exact texts, in the order of the chain. */
  readonly texts: readonly string[];
  /** The signed note that covers them all. */
  readonly checkpoint: string;
  /** Inclusion proofs (hex) by sequence number: of each record, and of the checkpoint's last. */
  readonly proofs: ReadonlyMap<number, readonly string[]>;
  /** The id of the key that signs. */
  readonly keyId: string;
  readonly fields: ReadonlyMap<number, ShownFields>;
  readonly witnessed?: Witnessed;
  /** The states of the chain at the checkpoint, and at the one that was published last. */
  readonly states?: readonly ShownState[];
}

/** The lines of a session's bundle but the seal, each made when it is asked for. Equal contents make equal lines. */
export function* bundleLines(content: BundleContent): Generator<string, void> {
  const checkpoint = parseCheckpoint(content.checkpoint);
  if (checkpoint === undefined) throw new TypeError("bundleLines: expected a checkpoint's note");
  yield canonicalJson(headOf(content, checkpoint) as unknown as Json);
  for (const text of content.texts) yield entryOf(content, text);
}

/** The lines, and the seal over them as the last. */
export function sealBundle(lines: readonly string[], key: SigningKey): Buffer {
  const bytes = Buffer.from(lines.map((line) => `${line}\n`).join(""));
  const seal: BundleSeal = { key_id: key.id, signature: key.sign(sealedBytes(bytes)).toString("base64") };
  return Buffer.concat([bytes, Buffer.from(`${canonicalJson({ ...seal })}\n`)]);
}

function headOf(content: BundleContent, checkpoint: Checkpoint): BundleHead {
  return {
    schema: bundleSchema,
    tenant: content.tenant,
    chain: checkpoint.chain,
    session: content.session,
    created: content.created,
    checkpoint: content.checkpoint,
    head_proof: content.proofs.get(checkpoint.size - 1) ?? [],
    consistency: growthOf(content, checkpoint),
    ...(content.states === undefined ? {} : { states: content.states }),
  };
}

/** The tree that a witness saw last, with the proof that it is the beginning of this one; without a witness, this tree. */
function growthOf({ witnessed }: BundleContent, { root, size }: Checkpoint): Consistency {
  const seen = witnessed === undefined ? undefined : parseCheckpoint(witnessed.note);
  if (witnessed === undefined || seen === undefined) return { first: size, proof: [], root: root.toString("hex") };
  return { first: seen.size, proof: witnessed.proof, root: seen.root.toString("hex") };
}

/** The record's line; its text goes in as it is, so that its digest stays. */
function entryOf({ fields, proofs }: BundleContent, text: string): string {
  const { kind, seq } = JSON.parse(text) as EvidenceRecord;
  const shown = fields.get(seq);
  const own = canonicalJson(textsOf(shown?.[kind === "decision" ? "arguments" : "output"] ?? []));
  const facts = shown?.facts === undefined ? "" : `"facts":${canonicalJson(textsOf(shown.facts))},`;
  return `{${facts}"fields":${own},"proof":${canonicalJson(proofs.get(seq) ?? [])},"record":${text}}`;
}

function textsOf(fields: readonly ShownField[]): readonly string[] {
  return fields.map((field) => ("salt" in field ? fieldText(field) : field.commitment));
}

/** A field that an export withholds. */
export interface WithheldField {
  readonly seq: number;
  readonly member: PrivateMember;
  readonly field: string;
}

const maxWithheld = 1_000;
const shape = /^(\d{1,15})\.(arguments|output|facts)\.(.{0,512})$/su;

/** Reads `<seq>.<member>.<field>`, each. Throws INVALID_PARAMS. */
export function parseRedactions(texts: readonly string[]): readonly WithheldField[] {
  if (texts.length > maxWithheld) {
    throw new GatewayError("INVALID_PARAMS", `expected at most ${maxWithheld} fields to redact, got ${texts.length}`);
  }
  return texts.map((text) => {
    const [, seq, member, field] = shape.exec(text) ?? [];
    if (seq === undefined || field === undefined) {
      throw new GatewayError(
        "INVALID_PARAMS",
        `expected \`<seq>.<arguments|output|facts>.<field>\`, got \`${cut(text)}\``,
      );
    }
    return { seq: Number(seq), member: member as WithheldField["member"], field };
  });
}

/**
 * The fields with those withheld. With an argument go all facts of its action: they repeat it. Throws INVALID_PARAMS for
 * one that is not there: a slip must not disclose it.
 */
export function withhold(
  fields: ReadonlyMap<number, ShownFields>,
  redactions: readonly WithheldField[],
): ReadonlyMap<number, ShownFields> {
  const result = new Map(fields);
  for (const { seq, member, field } of redactions) {
    const shown = result.get(seq);
    if (fields.get(seq)?.[member]?.some((each) => isNamed(each, field)) !== true) {
      throw new GatewayError("INVALID_PARAMS", `no field \`${seq}.${member}.${cut(field)}\` to redact`);
    }
    const kept = shown?.[member]?.map((each) => (isNamed(each, field) ? withheld(each) : each));
    const facts = member === "arguments" && shown?.facts !== undefined ? { facts: shown.facts.map(withheld) } : {};
    result.set(seq, { ...shown, [member]: kept, ...facts });
  }
  return result;
}

function withheld({ commitment }: ShownField): ShownField {
  return { commitment };
}

function isNamed(field: ShownField, name: string): boolean {
  return "name" in field && field.name === name;
}

function cut(text: string): string {
  return text.slice(0, 64).toWellFormed();
}
