import { checkpointOrigin, notePattern, parseCheckpoint, type SignedCheckpoint } from "../checkpoint.ts";
import type { KeyHistory } from "../key-history.ts";
import { Breach } from "./breach.ts";
import type { BundleHead } from "./bundle-line.ts";
import { checkCheckpointSignatures } from "./key-check.ts";
import type { Tree } from "./proof-check.ts";

/** What a breach names where the witness given from outside is the place. */
export const outsideWitness = "witness" as const;

/**
 * Compares a bundle with what a witness kept of its chain. `known` are the trees the bundle can vouch for: the largest
 * first, then one that it proves to be the beginning of it. True where the witness kept one of them.
 * Throws Breach `forked` where it kept another of the same size, `behind_witness` where it had seen more of the chain
 * before the bundle was made, `bad_checkpoint` for a note that is none, and the reasons of a checkpoint's signatures.
 */
export function checkWitness(
  notes: string,
  head: BundleHead,
  known: readonly [Tree, Tree],
  history: KeyHistory,
): boolean {
  let isKept = false;
  for (const note of readNotes(notes, head.chain)) {
    if (note.size > known[0].size && note.time < head.created) throw new Breach("behind_witness", place);
    const same = known.find(({ size }) => size === note.size);
    if (same === undefined) continue;
    if (!same.root.equals(note.root)) throw new Breach("forked", place);
    checkCheckpointSignatures(history, note, outsideWitness);
    isKept = true;
  }
  return isKept;
}

const place = { file: outsideWitness };

/**
 * A witness's file: notes among comment lines. Other chains' notes are not read, and one that a crash cut off is passed
 * over; a file with nothing else of this chain is no witness.
 */
function readNotes(text: string, chain: string): readonly SignedCheckpoint[] {
  const notes = [...text.matchAll(notePattern)].map(([note]) => parseCheckpoint(note));
  const own = notes.filter((note) => note !== undefined).filter((note) => note.chain === chain);
  if (own.length === 0 && `\n${text}`.includes(`\n${checkpointOrigin(chain)}\n`))
    throw new Breach("bad_checkpoint", place);
  return own;
}
