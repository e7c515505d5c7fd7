import type { VerifyingKey } from "../../kernel/signing-key.ts";
import { type Checkpoint, checkpointKeyName, type SignedCheckpoint } from "../checkpoint.ts";
import { KeyHistory } from "../key-history.ts";
import { Breach, type BundlePart } from "./breach.ts";
import type { BundledEntry, OpenBundle } from "./bundle-line.ts";

/**
 * The keys of the chain as its own records introduce them. Throws Breach `missing_record` without a genesis,
 * `bad_schema` where it names no key, and `bad_rotation` where a key was not handed on by its elder.
 */
export function readKeyHistory(entries: readonly BundledEntry[]): KeyHistory {
  const history = new KeyHistory();
  if (entries[0]?.record.kind !== "genesis") throw new Breach("missing_record", { file: "records" });
  for (const { record } of entries) {
    if (history.accept(record)) continue;
    throw new Breach(record.kind === "genesis" ? "bad_schema" : "bad_rotation", { file: "records", seq: record.seq });
  }
  return history;
}

/** The first key is the one an auditor was told of beforehand; where none was told, any will do, and is not trusted. */
export function checkTrusted(history: KeyHistory, trusted: readonly VerifyingKey[]): void {
  const first = history.tenures[0]?.key;
  if (trusted.length === 0 || trusted.some((key) => key.id === first?.id && key.text === first.text)) return;
  throw new Breach("unknown_key", { file: "records", seq: 0 });
}

/** Throws Breach where the bundle is not sealed by a key valid at the size of its checkpoint. */
export function checkSeal(history: KeyHistory, { size }: Checkpoint, { seal, sealed }: OpenBundle): void {
  const key = keyAt(history, seal.key_id, size, "seal");
  if (!key.verify(sealed, Buffer.from(seal.signature, "base64"))) throw new Breach("bad_signature", { file: "seal" });
}

/** Throws Breach where a note is not signed by every key valid at its size, or by any other. */
export function checkCheckpointSignatures(history: KeyHistory, checkpoint: SignedCheckpoint, file: BundlePart): void {
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
