import { canonicalJson, sha256Hex } from "../../action/canonical-json.ts";
import { compileGlob, type Glob } from "../../action/glob.ts";
import type { Random } from "../../action/id.ts";
import { isJsonObject, type Json } from "../../action/json.ts";

/** The parts of an action whose values lie apart from the chain. */
export const privateMembers = ["arguments", "output"] as const;
export type PrivateMember = (typeof privateMembers)[number];

/**
 * A field as it lies apart: whole, or as much of it as was to be kept. The commitment alone is left of what was never
 * stored, and of what was erased.
 */
export interface PrivateField {
  readonly commitment: string;
  readonly name?: string;
  readonly salt?: string;
  readonly value?: Json;
}

/** What is kept of what clients say, and what is never kept. */
export interface FieldPolicy {
  /** False: commitments and salts alone. */
  readonly storeValues: boolean;
  /** False: a session has its id alone, in records and lists. */
  readonly storeLabels: boolean;
  /** Globs over `<tool>:<field>`: of what one fits, the commitment alone is kept. */
  readonly redactFields: readonly string[];
}

/** The fields of one value, in the order of their commitments, and the digest a record carries of them. */
export interface HiddenValue {
  readonly digest: string;
  readonly fields: readonly PrivateField[];
}

/** Each field costs a digest on the road of the action; a value with more of them is one field. */
const maxFields = 256;

/** Takes private values apart into fields and commits to each under a salt of its own. */
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
   * than 256 members, is one field named "".
   */
  hide(tool: string, value: Json): HiddenValue {
    const members = isJsonObject(value) ? Object.entries(value) : [];
    const split = isJsonObject(value) && members.length <= maxFields;
    const fields = split
      ? members.map(([name, member]) => this.#hideField(name, member, this.#isRedacted(tool, name)))
      : [this.#hideField("", value, this.#isAnyRedacted(tool, value))];
    fields.sort((a, b) => (a.commitment < b.commitment ? -1 : 1));
    return { digest: fieldsDigest(fields.map(({ commitment }) => commitment)), fields };
  }

  /** Commits to a value of which nothing is kept: one field, without name and salt. */
  withhold(value: Json): HiddenValue {
    const field = this.#hideField("", value, true);
    return { digest: fieldsDigest([field.commitment]), fields: [field] };
  }

  #hideField(name: string, value: Json, redacted: boolean): PrivateField {
    const salt = drawSalt(this.#random);
    const commitment = fieldCommitment({ name, salt, value });
    if (redacted) return { commitment };
    return this.#storeValues ? { commitment, name, salt, value } : { commitment, salt };
  }

  #isRedacted(tool: string, name: string): boolean {
    return this.#redacted.some((glob) => glob.test(`${tool}:${name}`));
  }

  /** One field that holds many is as private as the most private of them. */
  #isAnyRedacted(tool: string, value: Json): boolean {
    if (this.#redacted.length === 0) return false;
    const names = isJsonObject(value) ? Object.keys(value) : [];
    return ["", ...names].some((name) => this.#isRedacted(tool, name));
  }
}

/** A private value under its name, and the salt (16 random bytes, base64url) without which nobody can guess it. */
interface SaltedField {
  readonly name: string;
  readonly salt: string;
  readonly value: Json;
}

/** What a commitment is over, and what discloses it: the RFC 8785 text of `["field-v1", salt, name, value]`. */
export function fieldText({ name, salt, value }: SaltedField): string {
  return canonicalJson(["field-v1", salt, name, value]);
}

/** SHA-256 (hex) of a field's text. */
export function fieldCommitment(field: SaltedField): string {
  return sha256Hex(fieldText(field));
}

/**
 * What a record says of all fields together: `sha256:<hex>` over the RFC 8785 bytes of `["fields-v1", commitments]`,
 * the commitments sorted. A field can be withheld, or erased, and its commitment still completes the digest.
 */
export function fieldsDigest(commitments: readonly string[]): string {
  return `sha256:${sha256Hex(canonicalJson(["fields-v1", commitments.toSorted()]))}`;
}

const saltBytes = 16;

/** A fresh salt: 16 random bytes, base64url. */
export function drawSalt(random: Random): string {
  const bytes = random(saltBytes);
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString("base64url");
}
