import type { VerifyingKey } from "../../kernel/signing-key.ts";
import { parseCheckpoint, type SignedCheckpoint } from "../checkpoint.ts";
import type { KeyHistory } from "../key-history.ts";
import { ActionStory, type Remark } from "./action-story.ts";
import { Breach, type BundlePart } from "./breach.ts";
import { type BundledEntry, type BundleHead, readBundle } from "./bundle-line.ts";
import { checkCheckpointSignatures, checkSeal, checkTrusted, readKeyHistory } from "./key-check.ts";
import { checkEntry, checkHead, readEarlierTree } from "./proof-check.ts";
import { exitCodes, type Reason, reasons, type Verdict } from "./reason.ts";
import { checkWitness, outsideWitness } from "./witness-check.ts";

/** What an auditor brings along; nothing in a bundle can vouch for the bundle. */
export interface Trust {
  /** First keys of chains, as the operator published them. With none, the verdict is `self-attested` at best. */
  readonly keys: readonly VerifyingKey[];
  /** The witness's notes. */
  readonly witness?: string;
  readonly nowMs: number;
  /** The oldest checkpoint that is not `stale`. */
  readonly maxAgeMs?: number;
}

export interface FirstBad {
  readonly reason: Reason;
  /** Which part of the bundle, or the witness. */
  readonly file: BundlePart;
  readonly seq?: number;
}

/** What a verification found. `checks` are the steps that passed, in order. */
export interface BundleReport {
  readonly verdict: Verdict;
  readonly exit: number;
  readonly first_bad: FirstBad | null;
  readonly warnings: readonly Remark[];
  readonly checks: readonly string[];
  /** Records in the bundle; 0 where they were not read. */
  readonly records: number;
  /** Digest of the chain's last record, as the checkpoint states it. */
  readonly head: string | null;
}

/**
 * Checks a bundle by its bytes alone: lines, signatures, proofs, and what its records may say after one
 * another. Never throws for what a bundle holds; the first thing wrong is named. A missing piece is told only where
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
  #remarks: readonly Remark[] = [];
  #isWitnessed = false;

  constructor(trust: Trust) {
    this.#trust = trust;
  }

  /** Who signed it comes first, then each record in its turn, then what others say. */
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
    this.#remarks = tellStory(entries, head, checkpoint);
    this.#pass("records");
    if (this.#trust.witness === undefined) return;
    this.#isWitnessed = checkWitness(this.#trust.witness, head, [checkpoint, earlier], history);
    if (this.#isWitnessed) this.#pass(outsideWitness);
  }

  /** The first thing missing, or that all is too old. */
  findGap(): FirstBad | null {
    const missed = this.#remarks.find(({ reason }) => reasons[reason].grade === "incomplete");
    if (missed !== undefined) return { ...missed, file: "records" };
    const { maxAgeMs, nowMs } = this.#trust;
    if (maxAgeMs === undefined || this.#checkpoint === undefined) return null;
    // As texts: a date that no calendar has is compared like any other.
    const oldest = new Date(Math.max(0, nowMs - maxAgeMs)).toISOString().slice(0, "2026-01-01T00:00:00".length);
    return this.#checkpoint.time < oldest ? { reason: "stale", file: "checkpoint" } : null;
  }

  report(bad: FirstBad | null): BundleReport {
    const verdict = bad === null ? this.#soundVerdict() : (reasons[bad.reason].grade as Verdict);
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

  #soundVerdict(): Verdict {
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

/** Each record is authentic before it is believed. */
function tellStory(entries: readonly BundledEntry[], head: BundleHead, signed: SignedCheckpoint): readonly Remark[] {
  const story = new ActionStory(head.session);
  let before = -1;
  for (const each of entries) {
    const { seq } = each.record;
    if (seq <= before) throw new Breach("seq_gap", { file: "records", seq });
    checkEntry(each, head, signed);
    story.tell(each);
    before = seq;
  }
  story.finish();
  return story.remarks;
}
