import { type Checkpoint, checkpointOrigin, parseCheckpoint, type SignedCheckpoint } from "../checkpoint.ts";
import type { KeyHistory } from "../key-history.ts";
import { Breach } from "./breach.ts";
import { checkCheckpointSignatures } from "./key-check.ts";
import type { Manifest } from "./manifest.ts";

export const witnessFile = "witness.txt";
/** What a breach names where the witness given from outside is the place. */
export const outsideWitness = "witness";

/**
 * Compares a bundle with what a witness kept of its chain. `known` are the checkpoints the bundle can vouch for: its
 * own, and the witness's that it proves to be the beginning of its own. True where the witness kept one of them.
 * Throws Breach `forked` where it kept another of the same size, `behind_witness` where it had seen more of the chain
 * before the bundle was made, and `bad_checkpoint` for a note that is none.
 */
export function checkWitness(
  notes: string,
  manifest: Manifest,
  known: readonly Checkpoint[],
  history: KeyHistory,
): boolean {
  let isKept = false;
  for (const note of readNotes(notes, manifest.chain)) {
    if (note.size > manifest.size && note.time < manifest.created) throw new Breach("behind_witness", place);
    const same = known.find(({ size }) => size === note.size);
    if (same === undefined) continue;
    if (!same.root.equals(note.root) || same.head !== note.head || !isSigned(history, note)) {
      throw new Breach("forked", place);
    }
    isKept = true;
  }
  return isKept;
}

const place = { file: outsideWitness };

/**
 * A witness's file: notes one after another, each behind a comment line. Other chains' notes are not read, and one that
 * a crash cut off is passed over; a file with nothing else of this chain is no witness.
 */
function readNotes(text: string, chain: string): readonly SignedCheckpoint[] {
  const notes = `\n${text}`
    .split(/\n#[^\n]*\n/)
    .map((note) => note.replace(/^\n/, ""))
    .filter((note) => note.startsWith(`${checkpointOrigin(chain)}\n`))
    .map((note) => parseCheckpoint(note.endsWith("\n") ? note : `${note}\n`));
  const checkpoints = notes.filter((note) => note !== undefined);
  if (checkpoints.length === 0 && notes.length > 0) throw new Breach("bad_checkpoint", place);
  return checkpoints;
}

/** A note of this chain under another key is another history of it. */
function isSigned(history: KeyHistory, note: SignedCheckpoint): boolean {
  try {
    checkCheckpointSignatures(history, note, outsideWitness);
    return true;
  } catch (error) {
    if (error instanceof Breach) return false;
    throw error;
  }
}
