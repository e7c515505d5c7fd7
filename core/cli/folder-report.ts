import { judgeList } from "../evidence/chain-list.ts";
import {
  type ChainVerdict,
  type Flaw,
  graded,
  judgeChain,
  judgeGone,
  type OutsideTrust,
} from "../evidence/folder-verdict.ts";
import type { EvidenceFolder } from "./evidence-folder.ts";
import { tellProgress } from "./print.ts";

/** What `--json` prints of a data folder. */
export interface FolderReport {
  readonly exit: number;
  readonly chains: readonly ChainVerdict[];
  /** Only where a witness has seen another list of chains. */
  readonly list?: Pick<ChainVerdict, "verdict" | "exit"> & { readonly first_bad: Flaw };
}

const progressEvery = 100_000;

/** Every tenant that has evidence here, and those that a witness says had; or the one that is asked for. */
export async function judgeFolder(folder: EvidenceFolder, trust: OutsideTrust, only?: string): Promise<FolderReport> {
  const { store, marks } = folder;
  const { gone, flaw } = await judgeList(store, marks, trust.witnesses);
  const tenants = only === undefined ? [...new Set([...folder.tenants, ...gone.keys()])].sort() : [only];
  const chains: ChainVerdict[] = [];
  for (const tenant of tenants) {
    const lost = gone.get(tenant);
    const judge = () => judgeChain(store, tenant, marks.get(tenant), trust, progressOf(tenant));
    chains.push(lost === undefined ? await judge() : judgeGone(tenant, lost));
  }
  if (flaw === undefined || only !== undefined) return { exit: worstOf(chains), chains };
  const list = { ...graded(flaw.reason), first_bad: flaw };
  return { exit: worstOf([...chains, list]), chains, list };
}

/** The worst verdict counts: exit codes grow with what is wrong, and a folder that holds nothing attests to nothing. */
function worstOf(verdicts: readonly { readonly exit: number }[]): number {
  return verdicts.reduce((most, { exit }) => Math.max(most, exit), verdicts.length === 0 ? 50 : 0);
}

/** Prints what was found for a person to read. */
export function printReport(found: FolderReport): void {
  for (const chain of found.chains) process.stdout.write(describeChain(chain));
  if (found.list === undefined) return;
  const { verdict, first_bad: bad } = found.list;
  process.stdout.write(`list of chains: ${verdict}, ${bad.reason}: ${bad.detail}\n`);
}

function describeChain({ tenant, verdict, first_bad: bad, records, first_kept: first }: ChainVerdict): string {
  const found = `${tenant}: ${verdict}, ${records} records${first === undefined ? "" : `, pruned before ${first}`}`;
  if (bad === null) return `${found}\n`;
  const place = bad.seq === undefined ? "" : ` at record ${bad.seq}`;
  return `${found}, then ${bad.reason}${place}: ${bad.detail}\n`;
}

function progressOf(tenant: string): (checked: number) => void {
  let next = progressEvery;
  return (checked) => {
    if (checked < next) return;
    next += progressEvery;
    tellProgress(`${tenant}: ${checked} records sound so far`);
  };
}
