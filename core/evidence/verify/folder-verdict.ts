import type { VerifyingKey } from "../../action/signing-key.ts";
import type { Mark } from "../chain/high-water.ts";
import { readKeyHistory } from "../key/key-history.ts";
import { checkpointKey, type EvidenceStore } from "../record/key-space.ts";
import { type EvidenceVerdict, exitCodes, type Reason, reasons } from "../record/reason.ts";
import { parseCheckpoint } from "../tree/checkpoint.ts";
import { TileReader } from "../tree/tile-reader.ts";
import { readInstallationId } from "../witness/installation.ts";
import { listPublishedHeads } from "../witness/published-heads.ts";
import { coversEntries, parseTenantIndex, type TenantIndexEntry, tenantIndexLog } from "../witness/tenant-index.ts";
import { compareWithNote, type Witness, type WitnessResult } from "../witness/witness.ts";
import type { RecordRules } from "./record-rule.ts";
import { type VerifyReport, verifyChain } from "./verification.ts";

/** The trust that a verdict rests on besides the data folder: all of it comes from outside. */
export interface OutsideTrust {
  /** First keys of chains, as their operator published them. With none, any first key is taken. */
  readonly keys: readonly VerifyingKey[];
  /** The rules that records are checked by. */
  readonly rules: RecordRules;
  readonly witnesses: readonly Witness[];
  readonly nowMs: number;
  /** The oldest checkpoint that is not `stale`. */
  readonly maxAgeMs: number | undefined;
}

/** The verdict over one tenant's chain. */
export interface ChainVerdict {
  readonly tenant: string;
  readonly verdict: EvidenceVerdict;
  readonly exit: number;
  readonly first_bad: { readonly seq?: number; readonly reason: Reason; readonly detail: string } | null;
  /** Sound records from the first on, pruned ones included. */
  readonly records: number;
  /** The first record that was kept by a pruning; absent where there was none. */
  readonly first_kept?: number;
  readonly head: string | null;
}

/** A fault of a chain as seen from outside. */
export interface Flaw {
  readonly reason: Reason;
  readonly detail: string;
}

/** Verifies a tenant's chain, then compares it with keys and witnesses from outside. */
export async function judgeChain(
  store: EvidenceStore,
  tenant: string,
  mark: Mark | undefined,
  trust: OutsideTrust,
  onProgress: (checked: number) => void,
): Promise<ChainVerdict> {
  const report = await verifyChain(store, tenant, mark, trust.rules, { onProgress });
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

export function graded(reason: Reason): { readonly verdict: EvidenceVerdict; readonly exit: number } {
  const { grade } = reasons[reason];
  const verdict = grade === "warning" ? "invalid" : grade;
  return { verdict, exit: exitCodes[verdict] };
}

/** Returns the fault seen from outside, or the verdict that the chain deserves. */
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
    const result = await compareWithNote(note, { tenant, chain, head }, keys, new TileReader(store, tenant));
    const flaw = flawOf(result, witness.name);
    if (flaw !== undefined) return flaw;
    witnessed = true;
  }
  return (await findStale(store, tenant, trust)) ?? (witnessed ? "witnessed" : "self-attested");
}

function flawOf(result: WitnessResult, witness: string): Flaw | undefined {
  switch (result.verdict) {
    case "consistent":
      return undefined;
    case "unreadable":
      return { reason: "bad_checkpoint", detail: `witness \`${witness}\` holds no checkpoint in this chain's log` };
    case "behind":
      return { reason: "behind_witness", detail: `witness \`${witness}\` has seen ${result.size} records` };
    case "forked":
      return { reason: "forked", detail: `witness \`${witness}\` has seen other records before ${result.size}` };
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

/** The chains that a data folder should hold according to its witnesses. */
interface ListVerdict {
  /** Chains that a witness has seen and the folder does not hold, by the tenant the folder's own list names. */
  readonly gone: ReadonlyMap<string, Flaw>;
  /** Set where a witness has seen a list that the folder does not have: then the missing chains cannot be named. */
  readonly flaw: Flaw | undefined;
}

/**
 * Compares the chains of a data folder with the list of chains that each witness has seen. That list is in the folder,
 * and its root with the witness: leaving a chain out of both store and list shows in the root.
 *
 * The witness's note is not checked against the installation's key: that key is in the folder too, and is no
 * proof of who holds the folder. The root is what binds.
 */
export async function judgeList(
  store: EvidenceStore,
  marks: ReadonlyMap<string, Mark>,
  witnesses: readonly Witness[],
): Promise<ListVerdict> {
  const id = await readInstallationId(store);
  const published = await listPublishedHeads(store);
  const held = new Set([...marks.values()].map(({ chain }) => chain));
  const gone = new Map<string, Flaw>();
  let flaw: Flaw | undefined;
  for (const witness of witnesses) {
    const entries = await findList(witness, { id, published, held });
    if (entries === undefined) flaw ??= otherList(witness.name);
    for (const entry of entries ?? [])
      if (!held.has(entry.chain)) gone.set(entry.tenant, goneFlaw(witness.name, entry));
  }
  return { gone, flaw };
}

interface Known {
  readonly id: string | undefined;
  readonly published: readonly (readonly TenantIndexEntry[])[];
  readonly held: ReadonlySet<string>;
}

/** The list that the witness's note is over; undefined where the folder has none such, or lost its name. */
async function findList(
  witness: Witness,
  { id, published, held }: Known,
): Promise<readonly TenantIndexEntry[] | undefined> {
  const note = id === undefined ? undefined : await witness.latest(tenantIndexLog(id));
  if (id === undefined || note === undefined) return (await hasSeenAny(witness, held)) ? undefined : [];
  const read = parseTenantIndex(note, id);
  return read === undefined ? undefined : published.find((list) => coversEntries(read, list));
}

/** The list is published with the chains: a witness that has a chain and no list has it under another name. */
async function hasSeenAny(witness: Witness, chains: ReadonlySet<string>): Promise<boolean> {
  for (const chain of chains) if ((await witness.latest(chain)) !== undefined) return true;
  return false;
}

function goneFlaw(witness: string, { size }: TenantIndexEntry): Flaw {
  return {
    reason: "behind_witness",
    detail: `the chain is gone: witness \`${witness}\` has seen ${size} records of it`,
  };
}

function otherList(witness: string): Flaw {
  return {
    reason: "forked",
    detail: `witness \`${witness}\` has seen a later or another list of chains than this data folder knows of`,
  };
}
