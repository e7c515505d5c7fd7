import { parseCheckpoint, type SignedCheckpoint } from "../checkpoint.ts";
import type { KeyHistory } from "../key-history.ts";
import type { VerifyingKey } from "../signing-key.ts";
import { ActionStory, type Remark } from "./action-story.ts";
import { Breach } from "./breach.ts";
import { BundleFiles, checkpointFile } from "./bundle-file.ts";
import { checkDisclosures, disclosureFile } from "./disclosure-check.ts";
import { checkCheckpointSignatures, checkManifestSignature, checkTrusted, readKeyHistory } from "./key-check.ts";
import { type Manifest, manifestFile, readManifest } from "./manifest.ts";
import { checkInclusion, consistencyFile, proofFile, readEarlierTree } from "./proof-check.ts";
import { exitCodes, type Reason, reasons, type Verdict } from "./reason.ts";
import { type BundledRecord, readRecords, recordFile } from "./record-file.ts";
import { readTar } from "./tar.ts";
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
  readonly file?: string;
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
 * Checks a bundle by its bytes alone: archive, manifest, signatures, proofs, and what its records may say after one
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

/** The chain that a bundle says it is of, to look for a witness's notes; undefined where it says nothing readable. */
export function readChainName(bytes: Uint8Array): string | undefined {
  try {
    const { chain } = readManifest(readTar(bytes).get(manifestFile) ?? new Uint8Array()).manifest;
    return /^[A-Za-z0-9_-]{1,64}$/.test(chain) ? chain : undefined;
  } catch (error) {
    if (error instanceof Breach) return undefined;
    throw error;
  }
}

class Verification {
  readonly #trust: Trust;
  readonly #checks: string[] = [];
  #records: readonly BundledRecord[] = [];
  #checkpoint: SignedCheckpoint | undefined;
  #remarks: readonly Remark[] = [];
  #isWitnessed = false;

  constructor(trust: Trust) {
    this.#trust = trust;
  }

  /** What is authentic comes first, what it means after. */
  check(bytes: Uint8Array): void {
    const archive = readTar(bytes);
    this.#pass("archive");
    const envelope = readManifest(archive.get(manifestFile) ?? missing(manifestFile));
    const { manifest } = envelope;
    const files = BundleFiles.check(archive, manifest);
    this.#pass("files");
    this.#records = readRecords(files.read(recordFile), manifest);
    const history = readKeyHistory(this.#records);
    checkTrusted(history, this.#trust.keys);
    this.#pass("records");
    const checkpoint = readCheckpoint(files, manifest, history);
    this.#checkpoint = checkpoint;
    this.#pass("checkpoint");
    checkManifestSignature(history, checkpoint, envelope);
    this.#pass("manifest");
    checkInclusion(this.#records, checkpoint, files.read(proofFile));
    this.#pass("inclusion");
    this.#remarks = tellStory(this.#records, manifest);
    this.#pass("story");
    checkDisclosures(this.#records, files.read(disclosureFile));
    this.#pass("disclosures");
    const earlier = readEarlierTree(checkpoint, files.read(consistencyFile));
    if (this.#trust.witness === undefined) return;
    this.#isWitnessed = checkWitness(this.#trust.witness, manifest, [checkpoint, earlier], history);
    if (this.#isWitnessed) this.#pass(outsideWitness);
  }

  /** The first thing missing, or that all is too old. */
  findGap(): FirstBad | null {
    const missed = this.#remarks.find(({ reason }) => reasons[reason].grade === "incomplete");
    if (missed !== undefined) return { ...missed, file: recordFile };
    const { maxAgeMs, nowMs } = this.#trust;
    if (maxAgeMs === undefined || this.#checkpoint === undefined) return null;
    // As texts: a date that no calendar has is compared like any other.
    const oldest = new Date(Math.max(0, nowMs - maxAgeMs)).toISOString().slice(0, "2026-01-01T00:00:00".length);
    return this.#checkpoint.time < oldest ? { reason: "stale", file: checkpointFile } : null;
  }

  report(bad: FirstBad | null): BundleReport {
    const verdict = bad === null ? this.#soundVerdict() : (reasons[bad.reason].grade as Verdict);
    return {
      verdict,
      exit: exitCodes[verdict],
      first_bad: bad,
      warnings: this.#remarks.filter(({ reason }) => reasons[reason].grade === "warning"),
      checks: this.#checks,
      records: this.#records.length,
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

function missing(file: string): never {
  throw new Breach("missing_file", { file });
}

function placeOf({ reason, place }: Breach): FirstBad {
  const { file, seq } = place;
  return { reason, ...(file === undefined ? {} : { file }), ...(seq === undefined ? {} : { seq }) };
}

/** The note of this chain under the keys of its size. Throws Breach `bad_checkpoint` for anything else. */
function readCheckpoint(files: BundleFiles, manifest: Manifest, history: KeyHistory): SignedCheckpoint {
  const place = { file: checkpointFile };
  const checkpoint = parseCheckpoint(Buffer.from(files.read(checkpointFile)).toString("utf8"));
  if (checkpoint === undefined) throw new Breach("bad_checkpoint", place);
  if (checkpoint.chain !== manifest.chain) throw new Breach("foreign_chain", place);
  checkCheckpointSignatures(history, checkpoint, checkpointFile);
  return checkpoint;
}

function tellStory(records: readonly BundledRecord[], manifest: Manifest): readonly Remark[] {
  const story = new ActionStory(manifest.session);
  for (const each of records) story.tell(each);
  story.finish();
  return story.remarks;
}
