import type { Flaw } from "./folder-verdict.ts";
import type { Mark } from "./high-water.ts";
import { readInstallationId } from "./installation.ts";
import type { EvidenceStore } from "./key-space.ts";
import { isOver, type MetaEntry, metaLog, parseMetaNote } from "./meta-log.ts";
import { readAllTold } from "./told-list.ts";
import type { Witness } from "./witness.ts";

/** What witnesses say of the chains a data folder should hold. */
export interface ListVerdict {
  /** Chains that a witness has seen and the folder does not hold, by the tenant the folder's own list names. */
  readonly gone: ReadonlyMap<string, Flaw>;
  /** Set where a witness has seen another list than the folder knows of: then nobody can say which chains are gone. */
  readonly flaw: Flaw | undefined;
}

/**
 * Compares the chains of a data folder with the list of chains that each witness has seen. That list is in the folder,
 * and its root with the witness: leaving a chain out of both store and list shows in the root.
 *
 * The witness's note is not checked against the installation's key: that key is in the folder too, and says nothing
 * about who holds the folder. What binds is the root.
 */
export async function judgeList(
  store: EvidenceStore,
  marks: ReadonlyMap<string, Mark>,
  witnesses: readonly Witness[],
): Promise<ListVerdict> {
  const id = await readInstallationId(store);
  const told = await readAllTold(store);
  const held = new Set([...marks.values()].map(({ chain }) => chain));
  const gone = new Map<string, Flaw>();
  let flaw: Flaw | undefined;
  for (const witness of witnesses) {
    const entries = await findList(witness, { id, told, held });
    if (entries === undefined) flaw ??= otherList(witness.name);
    for (const entry of entries ?? [])
      if (!held.has(entry.chain)) gone.set(entry.tenant, goneFlaw(witness.name, entry));
  }
  return { gone, flaw };
}

interface Known {
  readonly id: string | undefined;
  readonly told: readonly (readonly MetaEntry[])[];
  readonly held: ReadonlySet<string>;
}

/** The list that the witness's note is over; undefined where the folder has none such, or lost its name. */
async function findList(witness: Witness, { id, told, held }: Known): Promise<readonly MetaEntry[] | undefined> {
  const note = id === undefined ? undefined : await witness.latest(metaLog(id));
  if (id === undefined || note === undefined) return (await hasSeenAny(witness, held)) ? undefined : [];
  const read = parseMetaNote(note, id);
  return read === undefined ? undefined : told.find((list) => isOver(read, list));
}

/** A witness is told the list along with the chains: one that knows a chain and no list knows it under another name. */
async function hasSeenAny(witness: Witness, chains: ReadonlySet<string>): Promise<boolean> {
  for (const chain of chains) if ((await witness.latest(chain)) !== undefined) return true;
  return false;
}

function goneFlaw(witness: string, { size }: MetaEntry): Flaw {
  return {
    reason: "behind_witness",
    detail: `the chain is gone: witness \`${witness}\` has seen ${size} records of it`,
  };
}

function otherList(witness: string): Flaw {
  return { reason: "forked", detail: `witness \`${witness}\` has seen other chains than this data folder knows of` };
}
