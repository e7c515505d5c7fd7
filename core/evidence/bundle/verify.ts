import { parseCheckpoint, type SignedCheckpoint } from "../checkpoint.ts";
import type { KeyHistory } from "../key-history.ts";
import type { VerifyingKey } from "../signing-key.ts";
import { ActionStory, type Remark } from "./action-story.ts";
import { Breach } from "./breach.ts";
import { BundleFiles, checkpointFile } from "./bundle-file.ts";
import { readText } from "./canonical-file.ts";
import { checkDisclosures, disclosureFile } from "./disclosure-check.ts";
import {
  checkCheckpointSignatures,
  checkManifestSignature,
  checkTrusted,
  keyRanges,
  readKeyHistory,
} from "./key-check.ts";
import { type Manifest, manifestFile, readManifest } from "./manifest.ts";
import { checkConsistency, checkInclusion, consistencyFile, proofFile } from "./proof-check.ts";
import { checkProvenance, provenanceFile } from "./provenance.ts";
import { exitCodes, type Reason, reasons, type Verdict } from "./reason.ts";
import { type BundledRecord, readRecords, recordFile } from "./record-file.ts";
import { readTar } from "./tar.ts";
import { checkWitness, outsideWitness, witnessFile } from "./witness-check.ts";

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
    this.#records = readRecords(files.read(recordFile));
    checkPlace(this.#records, manifest);
    const history = readKeyHistory(this.#records);
    checkTrusted(history, this.#trust.keys);
    checkManifestSignature(history, envelope);
    checkKeyRanges(history, manifest);
    this.#pass("manifest");
    this.#checkpoint = readCheckpoint(files, checkpointFile, manifest, history);
    checkStatedTree(this.#checkpoint, manifest);
    this.#pass("checkpoint");
    checkInclusion(this.#records, this.#checkpoint, files.read(proofFile));
    this.#pass("inclusion");
    this.#remarks = tellStory(this.#records, manifest);
    this.#pass("story");
    checkDisclosures(this.#records, manifest, files.read(disclosureFile));
    checkProvenance(this.#records, files.read(provenanceFile));
    this.#pass("disclosures");
    this.#checkWitnesses(files, manifest, history, this.#checkpoint);
  }

  /** The first thing missing, or that all is too old. */
  findGap(): FirstBad | null {
    const missed = this.#remarks.find(({ reason }) => reasons[reason].grade === "incomplete");
    if (missed !== undefined) return { ...missed, file: recordFile };
    const { maxAgeMs, nowMs } = this.#trust;
    const ageMs = nowMs - Date.parse(this.#checkpoint?.time ?? "");
    return maxAgeMs !== undefined && ageMs > maxAgeMs ? { reason: "stale", file: checkpointFile } : null;
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

  #checkWitnesses(files: BundleFiles, manifest: Manifest, history: KeyHistory, checkpoint: SignedCheckpoint): void {
    const known = [checkpoint];
    if (files.hasWitness) {
      const earlier = readCheckpoint(files, witnessFile, manifest, history);
      checkConsistency(earlier, checkpoint, files.read(consistencyFile));
      known.push(earlier);
    }
    if (this.#trust.witness === undefined) return;
    this.#isWitnessed = checkWitness(this.#trust.witness, manifest, known, history);
    if (this.#isWitnessed) this.#pass(outsideWitness);
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

function checkPlace(records: readonly BundledRecord[], manifest: Manifest): void {
  for (const { record } of records) {
    const place = { file: recordFile, seq: record.seq };
    if (record.tenant !== manifest.tenant) throw new Breach("foreign_tenant", place);
    if (record.chain !== manifest.chain) throw new Breach("foreign_chain", place);
  }
}

function checkKeyRanges(history: KeyHistory, manifest: Manifest): void {
  if (JSON.stringify(keyRanges(history).map(sorted)) === JSON.stringify(manifest.public_keys)) return;
  throw new Breach("manifest_mismatch", { file: manifestFile });
}

function sorted<T extends object>(value: T): object {
  return Object.fromEntries(Object.entries(value).sort());
}

/** A note of this chain under the keys of its size. Throws Breach `bad_checkpoint` for anything else. */
function readCheckpoint(files: BundleFiles, file: string, manifest: Manifest, history: KeyHistory): SignedCheckpoint {
  const checkpoint = parseCheckpoint(readText(files.read(file), { file }));
  if (checkpoint === undefined) throw new Breach("bad_checkpoint", { file });
  if (checkpoint.chain !== manifest.chain) throw new Breach("foreign_chain", { file });
  checkCheckpointSignatures(history, checkpoint, file);
  return checkpoint;
}

function checkStatedTree({ size, root }: SignedCheckpoint, manifest: Manifest): void {
  if (size === manifest.size && root.toString("hex") === manifest.root) return;
  throw new Breach("manifest_mismatch", { file: manifestFile });
}

function tellStory(records: readonly BundledRecord[], manifest: Manifest): readonly Remark[] {
  const story = new ActionStory(manifest.session);
  for (const each of records) story.tell(each);
  story.finish();
  return story.remarks;
}
