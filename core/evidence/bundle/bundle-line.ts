import { isUtf8 } from "node:buffer";
import { canonicalJson, sha256Hex } from "../../action/canonical-json.ts";
import { isJsonObject, type Json } from "../../action/json.ts";
import type { Reason } from "../record/reason.ts";

import { type EvidenceRecord, effects, eventKinds, recordSchema } from "../record/record.ts";
import { countedEvents } from "../state/chain-state.ts";
import type { ShownState } from "../state/state-store.ts";

/** Checks the kind of a value; undefined stands for an absent member. */
type Shape = (value: Json | undefined) => boolean;

const text: Shape = (value) => typeof value === "string";

/** An integer from 0 to 2^53 − 1. */
const count: Shape = (value) => isCount(value);

/** SHA-256 in lower-case hex. */
const digest: Shape = (value) => isDigest(value);

/** RFC 3339, milliseconds, UTC. */
const time: Shape = matching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);

function matching(pattern: RegExp): Shape {
  return (value) => typeof value === "string" && pattern.test(value);
}

function exactly(expected: Json | undefined): Shape {
  return (value) => value === expected;
}

function oneOf(...shapes: readonly Shape[]): Shape {
  return (value) => shapes.some((shape) => shape(value));
}

function listOf(shape: Shape): Shape {
  return (value) => Array.isArray(value) && value.every(shape);
}

/** An object with at least these members. */
function objectWith(members: Readonly<Record<string, Shape>>): Shape {
  const shapes = Object.entries(members);
  return (value) => isJsonObject(value) && shapes.every(([name, shape]) => shape(own(value, name)));
}

/** An object with these members and no other. */
function closedObject(members: Readonly<Record<string, Shape>>): Shape {
  const shape = objectWith(members);
  return (value) => shape(value) && Object.keys(value as object).length === Object.keys(members).length;
}

function isCount(value: unknown): value is number {
  return Number.isSafeInteger(value) && Number(value) >= 0;
}

export function isDigest(value: unknown): value is string {
  return typeof value === "string" && /^[0-9a-f]{64}$/.test(value);
}

function own(value: { readonly [member: string]: Json }, name: string): Json | undefined {
  return Object.hasOwn(value, name) ? value[name] : undefined;
}

const absent = exactly(undefined);
/** The policies of an evaluation; an answer of another server is committed to by its digest. */
const policies = oneOf(
  absent,
  listOf(
    objectWith({
      answer_digest: oneOf(absent, matching(/^sha256:[0-9a-f]{64}$/)),
      replayable: oneOf(absent, exactly(false)),
    }),
  ),
);
const evaluation = objectWith({ decision: text, policies, shadow: policies });
const approvalEvent = objectWith({
  event: text,
  id: text,
  session: text,
  scope: oneOf(absent, exactly("exact"), exactly("task")),
});
const otherEvent = objectWith({ ticket: oneOf(absent, text) });
const otherKinds = eventKinds.filter((kind) => kind !== "genesis" && kind !== "approval");
const frame = {
  chain: text,
  prev_hash: digest,
  schema: exactly(recordSchema),
  seq: count,
  tenant: text,
  time,
  writer: objectWith({ epoch: count }),
} as const;
const step = {
  ...frame,
  action: objectWith({
    arguments_digest: text,
    facts: oneOf(absent, objectWith({ digest: text, effect: text })),
    fingerprint: text,
    id: text,
    output_digest: oneOf(absent, text),
  }),
  approval: oneOf(absent, objectWith({ fingerprint: text, id: text, state: text })),
  principal: objectWith({ id: text }),
  session: objectWith({ id: text, index: count, prev_hash: digest }),
  ticket: oneOf(absent, objectWith({ id: oneOf(absent, text), of: oneOf(absent, count), use: oneOf(absent, count) })),
} as const;

/** The members of a record that the rules read. */
const recordShape: Shape = oneOf(
  objectWith({ ...step, kind: exactly("decision"), effect: oneOf(...effects.slice(0, 2).map(exactly)), evaluation }),
  objectWith({
    ...step,
    kind: exactly("outcome"),
    effect: oneOf(...effects.slice(2).map(exactly)),
    evaluation: oneOf(absent, evaluation),
  }),
  objectWith({ ...frame, kind: exactly("genesis"), detail: objectWith({}) }),
  objectWith({ ...frame, kind: exactly("approval"), detail: approvalEvent }),
  objectWith({ ...frame, kind: oneOf(...otherKinds.map(exactly)), detail: otherEvent }),
);

/** The name of the format, and what its seal's signature begins with. A reader refuses any other. */
export const bundleSchema = "evidence-bundle-v1";

/** The first line: the identity of the bundle, and the tree that its records are in. */
export interface BundleHead {
  readonly schema: typeof bundleSchema;
  readonly tenant: string;
  readonly chain: string;
  readonly session: string;
  /** RFC 3339 time of the export; every record after the checkpoint is younger. */
  readonly created: string;
  /** The signed note over the whole chain. */
  readonly checkpoint: string;
  /** Inclusion proof (hex) of the checkpoint's own last record. */
  readonly head_proof: readonly string[];
  readonly consistency: Consistency;
  /** Absent in bundles of gateways that signed no states. */
  readonly states?: readonly ShownState[];
}

/** The tree as a witness had last seen it, and the proof (hex) that it only grew since. */
export interface Consistency {
  readonly first: number;
  readonly root: string;
  readonly proof: readonly string[];
}

/** A line between the first and the last: a record, its fields and its proof. */
interface BundleEntry {
  /** The facts of a decision, as `fields`; absent where its record commits to none. */
  readonly facts?: readonly string[];
  /** The fields that its digest is over, as the texts that were hashed; the hash of a withheld one. */
  readonly fields: readonly string[];
  /** Inclusion proof (hex) in the checkpoint's tree. */
  readonly proof: readonly string[];
  readonly record: EvidenceRecord;
}

/** The last line: a signature over all bytes before it. */
export interface BundleSeal {
  readonly key_id: string;
  readonly signature: string;
}

/** A record with the digest of its exact bytes. */
export interface BundledRecord {
  readonly record: EvidenceRecord;
  readonly hash: string;
}

/** An entry as it was read. */
export type BundledEntry = BundleEntry & BundledRecord;

/** A bundle as it was read; nothing of it is proven. */
export interface OpenBundle {
  readonly head: BundleHead;
  readonly entries: readonly BundledEntry[];
  readonly seal: BundleSeal;
  /** The bytes that the seal signs. */
  readonly sealed: Buffer;
}

const hashes = listOf(digest);
const stateProof = closedObject({
  beside: hashes,
  other: hashes,
  salt: text,
  value: listOf(count),
});
const shownState = closedObject({
  principal: stateProof,
  session: stateProof,
  state: closedObject({
    events: closedObject(Object.fromEntries(countedEvents.map((event) => [event, count]))),
    map: digest,
    size: count,
  }),
});
const headMembers = {
  schema: exactly(bundleSchema),
  tenant: text,
  chain: text,
  session: text,
  created: time,
  checkpoint: text,
  head_proof: hashes,
  consistency: closedObject({ first: count, root: digest, proof: hashes }),
};
const headShape = oneOf(closedObject(headMembers), closedObject({ ...headMembers, states: listOf(shownState) }));
/** A text that begins otherwise was hashed as something else than a field. */
const field = oneOf(digest, matching(/^\["field-v1",/));
const entryMembers = { fields: listOf(field), proof: hashes, record: recordShape };
const entryShape = oneOf(closedObject(entryMembers), closedObject({ ...entryMembers, facts: listOf(field) }));
/** 64 bytes in base64. */
const signature = matching(/^[A-Za-z0-9+/]{85}[AQgw]==$/);
const sealShape = closedObject({ key_id: text, signature });
const newline = 0x0a;

/**
 * Parses a bundle: lines of canonical JSON and nothing else. Throws Breach for anything else.
 * Checks no signature, proof or rule.
 */
export function readBundle(bytes: Uint8Array): OpenBundle {
  const [first, ...lines] = splitLines(bytes);
  const last = lines.pop();
  if (first === undefined || last === undefined) throw new Breach("malformed", { file: "bundle" });
  const head = readCanonicalJson<BundleHead>(first, "line 1", headShape);
  const seal = readCanonicalJson<BundleSeal>(last, `line ${lines.length + 2}`, sealShape);
  const sealed = bytes.subarray(0, bytes.length - last.length - 1);
  return { head, seal, sealed: sealedBytes(sealed), entries: lines.map(readEntry) };
}

/** The chain that a bundle names; undefined where its first line cannot be read. */
export function readChainName(bytes: Uint8Array): string | undefined {
  try {
    const [first] = splitLines(bytes);
    const { chain } = readCanonicalJson<BundleHead>(first ?? new Uint8Array(), "line 1", headShape);
    return /^[A-Za-z0-9_-]{1,64}$/.test(chain) ? chain : undefined;
  } catch (error) {
    if (error instanceof Breach) return undefined;
    throw error;
  }
}

/** The bytes that a seal signs: they begin with the format's name, so that no other signed text can pass for a bundle. */
export function sealedBytes(lines: Uint8Array): Buffer {
  return Buffer.concat([Buffer.from(`${bundleSchema}\n`), lines]);
}

function readEntry(line: Uint8Array, at: number): BundledEntry {
  const entry = readCanonicalJson<BundleEntry>(line, `line ${at + 2}`, entryShape);
  return { ...entry, hash: sha256Hex(canonicalJson(entry.record as unknown as Json)) };
}

function splitLines(bytes: Uint8Array): Uint8Array[] {
  const lines: Uint8Array[] = [];
  for (let at = 0; at < bytes.length; ) {
    const end = bytes.indexOf(newline, at);
    if (end === -1) throw new Breach("malformed", { file: "bundle" });
    lines.push(bytes.subarray(at, end));
    at = end + 1;
  }
  return lines;
}

/** Levels of nesting: beyond it, two parsers may fail in two ways. */
const maxDepth = 128;

/**
 * Reads JSON that has only one spelling: its bytes are the RFC 8785 text of what they say. So no member is read twice,
 * and no two readers see two things. Throws Breach `malformed`, `not_canonical` or `bad_schema`. The caller guarantees that `T` promises no more than `shape` checks.
 */
function readCanonicalJson<T>(bytes: Uint8Array, file: BundlePart, shape: Shape): T {
  const text = readText(bytes, { file });
  const value = parse(text, { file });
  if (!isCanonical(value, text)) throw new Breach("not_canonical", { file });
  if (!shape(value)) throw new Breach("bad_schema", { file });
  return value as T;
}

/** Throws Breach `malformed` for what is not UTF-8. */
function readText(bytes: Uint8Array, place: BreachPlace): string {
  if (!isUtf8(bytes)) throw new Breach("malformed", place);
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString("utf8");
}

function parse(text: string, place: BreachPlace): Json {
  if (depthOf(text) > maxDepth) throw new Breach("malformed", place);
  try {
    return JSON.parse(text) as Json;
  } catch {
    throw new Breach("malformed", place);
  }
}

function isCanonical(value: Json, text: string): boolean {
  try {
    return hasPlainNumbers(value) && canonicalJson(value) === text;
  } catch {
    return false; // RFC 8785 has no text for it: an overflowing number, a lone surrogate
  }
}

/** Integers of at most 15 digits: every language reads and prints these alike. */
function hasPlainNumbers(value: Json): boolean {
  if (typeof value === "number") return Number.isSafeInteger(value) && String(value).length < 16;
  return typeof value !== "object" || value === null || Object.values(value).every(hasPlainNumbers);
}

/** The deepest nesting, found before anything is built. Texts that are no JSON get some number. */
function depthOf(text: string): number {
  let [depth, deepest, inString] = [0, 0, false];
  for (let at = 0; at < text.length; at++) {
    const sign = text[at];
    if (sign === '"') inString = !inString;
    else if (inString) at += sign === "\\" ? 1 : 0;
    else if (sign === "[" || sign === "{") deepest = Math.max(deepest, ++depth);
    else if (sign === "]" || sign === "}") depth--;
  }
  return deepest;
}

/** The parts of a bundle that a verdict can name, the bundle itself, and the witness that an auditor brings along. */
export type BundlePart =
  | `line ${number}`
  | "bundle"
  | "checkpoint"
  | "consistency"
  | "records"
  | "seal"
  | "states"
  | "witness";

/** The place of a breach: a part of the bundle, and a record. */
export interface BreachPlace {
  readonly file: BundlePart;
  readonly seq?: number | undefined;
}

/** Ends a verification. Thrown and caught inside this folder: it never leaves `verifyBundle`. */
export class Breach extends Error {
  readonly reason: Reason;
  readonly place: BreachPlace;

  constructor(reason: Reason, place: BreachPlace) {
    super(reason);
    this.name = "Breach";
    this.reason = reason;
    this.place = place;
  }
}
