import { type Checkpoint, checkpointKeyName, isCheckpointSignedBy, type SignedCheckpoint } from "../checkpoint.ts";
import { KeyHistory } from "../key-history.ts";
import type { VerifyingKey } from "../signing-key.ts";
import { Breach } from "./breach.ts";
import { manifestFile, type SignedManifest } from "./manifest.ts";
import { type BundledRecord, recordFile } from "./record-file.ts";

/**
 * The keys of the chain as its own records introduce them. Throws Breach `missing_record` without a genesis,
 * `bad_schema` where it names no key, and `bad_rotation` where a key was not handed on by its elder.
 */
export function readKeyHistory(records: readonly BundledRecord[]): KeyHistory {
  const history = new KeyHistory();
  if (records[0]?.record.kind !== "genesis") throw new Breach("missing_record", { file: recordFile });
  for (const { record } of records) {
    if (history.accept(record)) continue;
    throw new Breach(record.kind === "genesis" ? "bad_schema" : "bad_rotation", { file: recordFile, seq: record.seq });
  }
  return history;
}

/** The first key is the one an auditor was told of beforehand; where none was told, any will do, and is not trusted. */
export function checkTrusted(history: KeyHistory, trusted: readonly VerifyingKey[]): void {
  const first = history.tenures[0]?.key;
  if (trusted.length === 0 || trusted.some((key) => key.id === first?.id && key.text === first.text)) return;
  throw new Breach("unknown_key", { file: recordFile, seq: 0 });
}

/** Throws Breach where the manifest is not signed by a key valid at the size of its checkpoint. */
export function checkManifestSignature(history: KeyHistory, { size }: Checkpoint, envelope: SignedManifest): void {
  const { keyId, signature, signed } = envelope;
  const key = keyAt(history, keyId, size, manifestFile);
  if (!key.verify(signed, signature)) throw new Breach("bad_signature", { file: manifestFile });
}

/** Throws Breach where a note is not signed by every key valid at its size, or by any other. */
export function checkCheckpointSignatures(history: KeyHistory, checkpoint: SignedCheckpoint, file: string): void {
  for (const { name } of checkpoint.note.signatures) keyAt(history, keyIdIn(name, checkpoint), checkpoint.size, file);
  const due = history.keysAt(checkpoint.size);
  if (checkpoint.note.signatures.length === due.length && isCheckpointSignedBy(checkpoint, due)) return;
  throw new Breach("bad_signature", { file });
}

function keyIdIn(name: string, { chain }: Checkpoint): string {
  const prefix = checkpointKeyName(chain, "");
  return name.startsWith(prefix) ? name.slice(prefix.length) : "";
}

function keyAt(history: KeyHistory, id: string, size: number, file: string): VerifyingKey {
  const key = history.keysAt(size).find((valid) => valid.id === id);
  if (key !== undefined) return key;
  const isKnown = history.tenures.some((tenure) => tenure.key.id === id);
  throw new Breach(isKnown ? "key_out_of_range" : "unknown_key", { file });
}
