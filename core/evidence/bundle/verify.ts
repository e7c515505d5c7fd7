import { sha256Hex } from "../../action/canonical-json.ts";
import type { VerifyingKey } from "../../action/signing-key.ts";
import { KeyHistory } from "../key/key-history.ts";
import { fieldsDigest } from "../private/private-field.ts";
import { type EvidenceVerdict, exitCodes, type Reason, reasons } from "../record/reason.ts";
import { isAction } from "../record/record-text.ts";
import {
  type Checkpoint,
  checkpointKeyName,
  checkpointOrigin,
  notePattern,
  parseCheckpoint,
  type SignedCheckpoint,
} from "../tree/checkpoint.ts";
import { leafHash, verifyConsistency, verifyInclusion } from "../tree/merkle.ts";
import type { RecordRules } from "../verify/record-rule.ts";
import { ActionStory, type Remark } from "./action-story.ts";
import {
  Breach,
  type BundledEntry,
  type BundleHead,
  type BundlePart,
  isDigest,
  type OpenBundle,
  readBundle,
} from "./bundle-line.ts";
import { checkStates, findLack } from "./completeness.ts";

/** The auditor's own trust; nothing in a bundle can vouch for the bundle. */
interface Trust {
  /** First keys of chains, as the operator published them. With none, the verdict is `self-attested` at best. */
  readonly keys: readonly VerifyingKey[];
  /** The rules that records are checked by. */
  readonly rules: RecordRules;
  /** The witness's notes; undefined where none is asked. */
  readonly witness?: string;
  readonly nowMs: number;
  /** The oldest checkpoint that is not `stale`. */
  readonly maxAgeMs?: number;
}

interface FirstBad {
  readonly reason: Reason;
  /** The part of the bundle, or the witness. */
  readonly file: BundlePart;
  readonly seq?: number;
}

/** Without a number where it is about no record. */
type Warning = Pick<Remark, "reason"> & Partial<Remark>;

/** The result of a verification. `checks` are the steps that passed, in order. */
export interface BundleReport {
  readonly verdict: EvidenceVerdict;
  readonly exit: number;
  readonly first_bad: FirstBad | null;
  readonly warnings: readonly Warning[];
  readonly checks: readonly string[];
  /** Records in the bundle; 0 where they were not read. */
  readonly records: number;
  /** Digest of the chain's last record, as the checkpoint states it. */
  readonly head: string | null;
}

/**
 * Checks a bundle by its bytes alone: lines, signatures, proofs, and what its records may say after one
 * another. Never throws for the content of a bundle; the first fault is named. A missing piece is reported only where
 * nothing is false.
 */
export function verifyBundle(bytes: Uint8Array, trust: Trust): BundleReport {
  const run = new Verification(trust);
  try {
    run.check(bytes);
    return run.report(run.findGap());
  } catch (error) {
    if (!(error instanceof Breach)) throw error;
    return run.report(placeOf(error));
  }
}

class Verification {
  readonly #trust: Trust;
  readonly #checks: string[] = [];
  #entries: readonly BundledEntry[] = [];
  #checkpoint: SignedCheckpoint | undefined;
  #remarks: readonly Warning[] = [];
  #isWitnessed = false;
  #lack: FirstBad | null = null;

  constructor(trust: Trust) {
    this.#trust = trust;
  }

  /** Checks signatures first, then each record in turn, then the witness. */
  check(bytes: Uint8Array): void {
    const bundle = readBundle(bytes);
    const { head, entries } = bundle;
    this.#entries = entries;
    this.#pass("format");
    const history = readKeyHistory(entries);
    checkTrusted(history, this.#trust.keys);
    this.#pass("keys");
    const checkpoint = readCheckpoint(head, history);
    this.#checkpoint = checkpoint;
    this.#pass("checkpoint");
    checkSeal(history, checkpoint, bundle);
    this.#pass("seal");
    checkHead(checkpoint, head);
    const earlier = readEarlierTree(checkpoint, head);
    this.#pass("tree");
    this.#remarks = checkRecords(entries, head, checkpoint, this.#trust.rules);
    this.#pass("records");
    checkStates(head, entries);
    const { witness } = this.#trust;
    const notes = readNotes(witness ?? "", head.chain);
    const kept = checkWitness(notes, head, [checkpoint, earlier], history);
    if (witness !== undefined && notes.length === 0) this.#remarks = [{ reason: "foreign_witness" }, ...this.#remarks];
    this.#isWitnessed = kept.length > 0;
    if (this.#isWitnessed) this.#pass(outsideWitness);
    const due = [checkpoint, ...kept];
    this.#lack = findLack(head, entries, due);
    if (due.some(({ state }) => state !== undefined)) this.#pass("states");
    else this.#remarks = [{ reason: "no_state", seq: 0 }, ...this.#remarks];
  }

  /** The first thing missing, or that all is too old. */
  findGap(): FirstBad | null {
    const missed = this.#remarks.find(({ reason }) => reasons[reason].grade === "incomplete");
    if (missed !== undefined) return { ...missed, file: "records" };
    if (this.#lack !== null) return this.#lack;
    const { maxAgeMs, nowMs } = this.#trust;
    if (maxAgeMs === undefined || this.#checkpoint === undefined) return null;
    // As texts: a date that no calendar has is compared like any other.
    const oldest = new Date(Math.max(0, nowMs - maxAgeMs)).toISOString().slice(0, "2026-01-01T00:00:00".length);
    return this.#checkpoint.time < oldest ? { reason: "stale", file: "checkpoint" } : null;
  }

  report(bad: FirstBad | null): BundleReport {
    const verdict = bad === null ? this.#soundVerdict() : (reasons[bad.reason].grade as EvidenceVerdict);
    return {
      verdict,
      exit: exitCodes[verdict],
      first_bad: bad,
      warnings: this.#remarks.filter(({ reason }) => reasons[reason].grade === "warning"),
      checks: this.#checks,
      records: this.#entries.length,
      head: this.#checkpoint?.head ?? null,
    };
  }

  #soundVerdict(): EvidenceVerdict {
    return this.#isWitnessed && this.#trust.keys.length > 0 ? "witnessed" : "self-attested";
  }

  #pass(check: string): void {
    this.#checks.push(check);
  }
}

function placeOf({ reason, place: { file, seq } }: Breach): FirstBad {
  return { reason, file, ...(seq === undefined ? {} : { seq }) };
}

/** The note of this chain under the keys of its size. Throws Breach `bad_checkpoint` for anything else. */
function readCheckpoint(head: BundleHead, history: KeyHistory): SignedCheckpoint {
  const place = { file: "checkpoint" } as const;
  const checkpoint = parseCheckpoint(head.checkpoint);
  if (checkpoint === undefined) throw new Breach("bad_checkpoint", place);
  if (checkpoint.chain !== head.chain) throw new Breach("foreign_chain", place);
  checkCheckpointSignatures(history, checkpoint, "checkpoint");
  return checkpoint;
}

/** Checks each record's proof before its story. */
function checkRecords(
  entries: readonly BundledEntry[],
  head: BundleHead,
  signed: SignedCheckpoint,
  rules: RecordRules,
): readonly Remark[] {
  const story = new ActionStory(head.session, rules);
  let before = -1;
  for (const each of entries) {
    const { seq } = each.record;
    if (seq <= before) throw new Breach("seq_gap", { file: "records", seq });
    checkEntry(each, head, signed);
    story.check(each);
    before = seq;
  }
  story.finish();
  return story.remarks;
}

/**
 * The keys of the chain as its own records introduce them. Throws Breach `missing_record` without a genesis,
 * `bad_schema` where it names no key, and `bad_rotation` where the old key did not sign the rotation.
 */
function readKeyHistory(entries: readonly BundledEntry[]): KeyHistory {
  const history = new KeyHistory();
  if (entries[0]?.record.kind !== "genesis") throw new Breach("missing_record", { file: "records" });
  for (const { record } of entries) {
    if (history.accept(record)) continue;
    throw new Breach(record.kind === "genesis" ? "bad_schema" : "bad_rotation", { file: "records", seq: record.seq });
  }
  return history;
}

/** The first key must be one that the auditor trusts. Without a trusted key any first key passes, untrusted. */
function checkTrusted(history: KeyHistory, trusted: readonly VerifyingKey[]): void {
  const first = history.tenures[0]?.key;
  if (trusted.length === 0 || trusted.some((key) => key.id === first?.id && key.text === first.text)) return;
  throw new Breach("unknown_key", { file: "records", seq: 0 });
}

/** Throws Breach where the bundle is not sealed by a key valid at the size of its checkpoint. */
function checkSeal(history: KeyHistory, { size }: Checkpoint, { seal, sealed }: OpenBundle): void {
  const key = keyAt(history, seal.key_id, size, "seal");
  if (!key.verify(sealed, Buffer.from(seal.signature, "base64"))) throw new Breach("bad_signature", { file: "seal" });
}

/** Throws Breach where a note is not signed by every key valid at its size, or by any other. */
function checkCheckpointSignatures(history: KeyHistory, checkpoint: SignedCheckpoint, file: BundlePart): void {
  const { note, size } = checkpoint;
  // By name: the hint of a key in a signature line proves nothing.
  const signers = note.signatures.map(({ name }) => keyAt(history, keyIdIn(name, checkpoint), size, file));
  const areSound = note.signatures.every(({ signature }, at) => signers[at]?.verify(note.text, signature));
  const isComplete = new Set(signers).size === signers.length && signers.length === history.keysAt(size).length;
  if (!areSound || !isComplete) throw new Breach("bad_signature", { file });
}

function keyIdIn(name: string, { chain }: Checkpoint): string {
  const prefix = checkpointKeyName(chain, "");
  return name.startsWith(prefix) ? name.slice(prefix.length) : "";
}

function keyAt(history: KeyHistory, id: string, size: number, file: BundlePart): VerifyingKey {
  const key = history.keysAt(size).find((valid) => valid.id === id);
  if (key !== undefined) return key;
  const isKnown = history.tenures.some((tenure) => tenure.key.id === id);
  throw new Breach(isKnown ? "key_out_of_range" : "unknown_key", { file });
}

/** A tree of the chain at one of its sizes. */
type Tree = Pick<Checkpoint, "root" | "size">;

/** The checkpoint's head is the last leaf of its tree. Throws Breach `head_mismatch`. */
function checkHead(checkpoint: Checkpoint, { head_proof: proof }: BundleHead): void {
  if (isIncluded(checkpoint.head, checkpoint.size - 1, checkpoint, proof)) return;
  throw new Breach("head_mismatch", { file: "checkpoint" });
}

/** The tree that a witness saw last, proven to be the beginning of the checkpoint's. Throws Breach `bad_consistency`. */
function readEarlierTree(checkpoint: Tree, { consistency }: BundleHead): Tree {
  const earlier = { root: Buffer.from(consistency.root, "hex"), size: consistency.first };
  const proof = bytesOf(consistency.proof);
  if (verifyConsistency(earlier.size, earlier.root, checkpoint.size, checkpoint.root, proof)) return earlier;
  throw new Breach("bad_consistency", { file: "consistency" });
}

/**
 * A record is of this chain, in the checkpoint's tree at its own number, and its fields are those it commits to.
 * Throws Breach `foreign_tenant`, `foreign_chain`, `bad_inclusion` or `bad_disclosure`, `seq_gap` for a number beyond the
 * tree, and `bad_schema` for a genesis that is not the first record, or a first record that is none.
 */
function checkEntry(entry: BundledEntry, head: BundleHead, checkpoint: Checkpoint): void {
  const { chain, kind, seq, tenant } = entry.record;
  const place = { file: "records", seq } as const;
  if (seq >= checkpoint.size) throw new Breach("seq_gap", place);
  if ((kind === "genesis") !== (seq === 0)) throw new Breach("bad_schema", place);
  if (tenant !== head.tenant) throw new Breach("foreign_tenant", place);
  if (chain !== head.chain) throw new Breach("foreign_chain", place);
  if (!isIncluded(entry.hash, seq, checkpoint, entry.proof)) throw new Breach("bad_inclusion", place);
  if (!areFieldsDue(entry)) throw new Breach("bad_disclosure", place);
}

/** A decision's fields are its arguments, with its facts beside them; an outcome's are its output. */
function areFieldsDue({ facts = [], fields, record }: BundledEntry): boolean {
  if (!isAction(record)) return isDisclosure(undefined, fields) && isDisclosure(undefined, facts);
  const { arguments_digest: args, facts: found, output_digest: output } = record.action;
  const isDecision = record.kind === "decision";
  return (
    isDisclosure(isDecision ? args : output, fields) && isDisclosure(isDecision ? found?.digest : undefined, facts)
  );
}

/** Checks that fields are all that a digest is over, in the order of their commitments; none where there is no digest. */
function isDisclosure(due: string | undefined, fields: readonly string[]): boolean {
  if (due === undefined) return fields.length === 0;
  const commitments = fields.map((field) => (isDigest(field) ? field : sha256Hex(field)));
  const isOrdered = commitments.every((each, at) => at === 0 || (commitments[at - 1] as string) < each);
  return isOrdered && fieldsDigest(commitments) === due;
}

function isIncluded(digest: string, seq: number, { size, root }: Checkpoint, proof: readonly string[]): boolean {
  return verifyInclusion(leafHash(digest), seq, size, bytesOf(proof), root);
}

function bytesOf(hashes: readonly string[]): readonly Buffer[] {
  return hashes.map((hash) => Buffer.from(hash, "hex"));
}

/** The place of a breach in the witness that the auditor brought. */
const outsideWitness = "witness" as const;

/**
 * Compares a bundle with the notes that a witness kept of its chain. `known` are the trees the bundle can vouch for: the largest
 * first, then one that it proves to be the beginning of it. Returns the notes of the last size that the witness kept up to
 * the largest, where that is one of them; an earlier one does not say how the chain went on.
 * Throws Breach `forked` where it kept another of the same size, `behind_witness` where it had seen more of the chain
 * before the bundle was made, and the reasons of a checkpoint's signatures.
 */
function checkWitness(
  own: readonly SignedCheckpoint[],
  head: BundleHead,
  known: readonly [Tree, Tree],
  history: KeyHistory,
): readonly Checkpoint[] {
  for (const note of own) {
    if (note.size > known[0].size && note.time < head.created) throw new Breach("behind_witness", place);
    const same = known.find(({ size }) => size === note.size);
    if (same === undefined) continue;
    if (!same.root.equals(note.root)) throw new Breach("forked", place);
    checkCheckpointSignatures(history, note, outsideWitness);
  }
  const covered = own.filter(({ size }) => size <= known[0].size);
  const last = Math.max(...covered.map(({ size }) => size));
  return known.some(({ size }) => size === last) ? covered.filter(({ size }) => size === last) : [];
}

const place = { file: outsideWitness };

/**
 * A witness's file: notes among comment lines. Other chains' notes are not read, and one that a crash cut off is passed
 * over. Throws Breach `bad_checkpoint` where nothing else is of this chain.
 */
function readNotes(text: string, chain: string): readonly SignedCheckpoint[] {
  const notes = [...text.matchAll(notePattern)].map(([note]) => parseCheckpoint(note));
  const own = notes.filter((note) => note !== undefined).filter((note) => note.chain === chain);
  if (own.length === 0 && `\n${text}`.includes(`\n${checkpointOrigin(chain)}\n`))
    throw new Breach("bad_checkpoint", place);
  return own;
}
