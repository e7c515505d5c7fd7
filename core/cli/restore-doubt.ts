import type { Mark } from "../evidence/high-water.ts";
import { readAllTold } from "../evidence/told-list.ts";
import type { StagedBackup } from "./backup-stage.ts";
import type { FolderReport } from "./folder-report.ts";

/** Why something should not be restored. */
export interface Doubt {
  readonly text: string;
  /** It may be as old as that, and nothing else: a person who knows why may accept it. */
  readonly isAge: boolean;
}

/**
 * What speaks against restoring a backup: chains that are not sound, witnesses that have seen more, and where a witness
 * was told of a chain, that none was named. `former` are the marks of the state it replaces; undefined where they cannot
 * be read.
 */
export async function findDoubts(
  staged: StagedBackup,
  { chains, list }: FolderReport,
  former: ReadonlyMap<string, Mark> | undefined,
): Promise<readonly Doubt[]> {
  const told = new Set((await readAllTold(staged.store)).flat().map(({ chain }) => chain));
  const doubts: Doubt[] = [];
  for (const { tenant, verdict, first_bad: bad } of chains) {
    const chain = staged.marks.get(tenant)?.chain ?? "";
    // A chain that was named, and held nothing yet.
    const isUnborn = staged.marks.get(tenant)?.seq === -1 && bad?.reason === "missing_record";
    if (bad !== null && !isUnborn) {
      // What a witness says has no place in the chain; what is wrong inside it has.
      const isAge = bad.reason === "behind_witness" && bad.seq === undefined;
      doubts.push({ text: `chain of tenant \`${tenant}\`: ${bad.detail}`, isAge });
    } else if (verdict === "self-attested" && told.has(chain)) {
      doubts.push({ text: `chain of tenant \`${tenant}\` has a witness; name it with --witness`, isAge: true });
    }
  }
  if (list !== undefined) doubts.push({ text: list.first_bad.detail, isAge: true });
  return [...doubts, ...formerDoubts(staged.marks, former)];
}

/** The state that is replaced is a witness too, as long as it says anything. */
function formerDoubts(
  marks: ReadonlyMap<string, Mark>,
  former: ReadonlyMap<string, Mark> | undefined,
): readonly Doubt[] {
  if (former === undefined) return [{ text: "the marks of what is replaced cannot be read", isAge: true }];
  return [...former.values()].flatMap(({ tenant, chain, seq }) => {
    const mark = marks.get(tenant);
    const kept = mark?.chain === chain ? mark.seq : -1;
    if (kept >= seq) return [];
    const text = `chain of tenant \`${tenant}\`: what is replaced has ${seq + 1} records, the backup ${kept + 1}`;
    return [{ text, isAge: true }];
  });
}
