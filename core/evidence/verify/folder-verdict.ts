import type { VerifyingKey } from "../../action/signing-key.ts";
import { exitCodes, type Reason, reasons, type Verdict } from "../bundle/reason.ts";
import type { Mark } from "../chain/high-water.ts";
import { checkpointKey, type EvidenceStore } from "../chain/key-space.ts";
import { readKeyHistory } from "../key/attested-head.ts";
import { parseCheckpoint } from "../tree/checkpoint.ts";
import { TileReader } from "../tree/tile-reader.ts";
import { checkTestimony, type Witness } from "../witness/witness.ts";
import { type VerifyReport, verifyChain } from "./verification.ts";

/** What a verdict rests on besides the data folder: all of it comes from outside. */
export interface OutsideTrust {
  /** First keys of chains, as their operator published them. With none, any first key is taken. */
  readonly keys: readonly VerifyingKey[];
  readonly witnesses: readonly Witness[];
  readonly nowMs: number;
  /** The oldest checkpoint that is not `stale`. */
  readonly maxAgeMs: number | undefined;
}

/** The verdict over one tenant's chain. */
export interface ChainVerdict {
  readonly tenant: string;
  readonly verdict: Verdict;
  readonly exit: number;
  readonly first_bad: { readonly seq?: number; readonly reason: Reason; readonly detail: string } | null;
  /** Sound records from the first on, pruned ones included. */
  readonly records: number;
  /** Where the chain begins since it was pruned; absent where it was not. */
  readonly first_kept?: number;
  readonly head: string | null;
}

/** What is wrong with a chain as seen from outside. */
export interface Flaw {
  readonly reason: Reason;
  readonly detail: string;
}

/** Verifies a tenant's chain, then weighs it against keys and witnesses from outside. */
export async function judgeChain(
  store: EvidenceStore,
  tenant: string,
  mark: Mark | undefined,
  trust: OutsideTrust,
  onProgress: (checked: number) => void,
): Promise<ChainVerdict> {
  const report = await verifyChain(store, tenant, mark, onProgress);
  const pruned = report.firstKept === undefined ? {} : { first_kept: report.firstKept };
  const place = { tenant, records: report.records, ...pruned, head: report.head?.hash ?? null };
  if (report.firstBad !== undefined) return { ...place, ...graded(report.firstBad.reason), first_bad: report.firstBad };
  const weighed = await weigh(store, report, mark?.chain ?? "", trust);
  if (typeof weighed !== "string") return { ...place, ...graded(weighed.reason), first_bad: weighed };
  return { ...place, verdict: weighed, exit: exitCodes[weighed], first_bad: null };
}

/** The verdict over a chain of which nothing is in the folder, or another chain in its place. */
export function judgeGone(tenant: string, flaw: Flaw): ChainVerdict {
  return { tenant, records: 0, head: null, ...graded(flaw.reason), first_bad: flaw };
}

export function graded(reason: Reason): { readonly verdict: Verdict; readonly exit: number } {
  const { grade } = reasons[reason];
  const verdict = grade === "warning" ? "invalid" : grade;
  return { verdict, exit: exitCodes[verdict] };
}

/** What is wrong seen from outside; else how far the chain can be trusted. */
async function weigh(
  store: EvidenceStore,
  { tenant, head }: VerifyReport,
  chain: string,
  trust: OutsideTrust,
): Promise<Flaw | "witnessed" | "self-attested"> {
  if (head === null) return { reason: "missing_record", detail: "the tenant has no evidence here" };
  const keys = await readKeyHistory(store, tenant, chain);
  const first = typeof keys === "string" ? undefined : keys.tenures[0]?.key;
  if (typeof keys === "string" || first === undefined) return { reason: "unknown_key", detail: String(keys) };
  if (trust.keys.length > 0 && !trust.keys.some(({ id }) => id === first.id)) {
    return { reason: "unknown_key", detail: `the chain's first key \`${first.id}\` is not one that was given` };
  }
  let witnessed = false;
  for (const witness of trust.witnesses) {
    const note = await witness.latest(chain);
    if (note === undefined) continue;
    const testimony = await checkTestimony(note, { tenant, chain, head }, keys, new TileReader(store, tenant));
    const flaw = flawOf(testimony, witness.name);
    if (flaw !== undefined) return flaw;
    witnessed = true;
  }
  return (await findStale(store, tenant, trust)) ?? (witnessed ? "witnessed" : "self-attested");
}

function flawOf(testimony: Awaited<ReturnType<typeof checkTestimony>>, witness: string): Flaw | undefined {
  switch (testimony.verdict) {
    case "consistent":
      return undefined;
    case "unreadable":
      return { reason: "bad_checkpoint", detail: `witness \`${witness}\` holds no checkpoint in this chain's log` };
    case "behind":
      return { reason: "behind_witness", detail: `witness \`${witness}\` has seen ${testimony.size} records` };
    case "forked":
      return { reason: "forked", detail: `witness \`${witness}\` has seen other records before ${testimony.size}` };
  }
}

async function findStale(
  store: EvidenceStore,
  tenant: string,
  { nowMs, maxAgeMs }: OutsideTrust,
): Promise<Flaw | undefined> {
  const checkpoint = parseCheckpoint((await store.get(checkpointKey(tenant))) ?? "");
  if (maxAgeMs === undefined || checkpoint === undefined || nowMs - Date.parse(checkpoint.time) <= maxAgeMs)
    return undefined;
  return { reason: "stale", detail: `the latest checkpoint is of ${checkpoint.time}` };
}
