import { userInfo } from "node:os";
import { resolve } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import type { Command } from "commander";
import { GatewayError } from "../action/error.ts";
import { pruneApprovals } from "../approval/history.ts";
import { type EraseResult, type EvidenceJob, type PruneResult, pruneResultOf } from "../evidence/evidence-jobs.ts";
import { evidenceOperations } from "../evidence/operation.ts";
import type { ErasureRequest } from "../evidence/retention/erasure.ts";
import type { PruneTools } from "../evidence/retention/retention.ts";
import type { AdminOperation } from "../operation/operation.ts";
import { rewriteRange } from "../store/rewrite.ts";
import { type AdminOptions, callAdmin, fetchWhole, type Values } from "./admin-client.ts";
import { changeEvidence } from "./evidence-folder.ts";
import { print, say, sayProgress } from "./print.ts";

interface ChangeOptions extends AdminOptions {
  readonly data?: string;
  readonly tenant?: string;
  readonly by?: string;
  readonly json?: true;
}

/** The data folder of a stopped gateway, and the tenant in it. */
interface Place {
  readonly data: string;
  readonly tenant: string;
  readonly by: string;
}

/** Null for a gateway that serves: it knows the tenant and the person by the API key. */
function placeOf({ data, tenant, by }: ChangeOptions, command: Command): Place | null {
  if (data !== undefined && tenant !== undefined) return { data, tenant, by: by ?? currentUser() };
  if (data !== undefined || tenant !== undefined) {
    return command.error("error: expected both `--data <folder>` and `--tenant <name>`, or neither");
  }
  if (by === undefined) return null;
  return command.error(
    "error: expected `--by <name>` with `--data <folder>` only: a gateway records the holder of the key",
  );
}

type Changed<Result> = Result & { readonly tenant: string };

interface EraseOptions extends ChangeOptions {
  readonly session?: string;
  readonly seq?: number;
  readonly field: readonly string[];
  readonly reason: string;
}

/** `gateway evidence erase`. Ends with 1 where nothing was erased. */
export async function eraseFields(options: EraseOptions, command: Command): Promise<void> {
  const { session, seq, field: fields, reason, json } = options;
  const of = session !== undefined ? { session } : seq !== undefined ? { seq } : undefined;
  if (of === undefined) return command.error("error: expected `--session <name>` or `--seq <number>`");
  const place = placeOf(options, command);
  const erased =
    place === null
      ? await runJob<EraseResult>(options, evidenceOperations.eraseEvidence, { ...of, fields, reason })
      : await eraseInFolder(place, { of, fields, reason, by: place.by });
  printErased(erased, json);
}

async function eraseInFolder({ data, tenant }: Place, request: ErasureRequest): Promise<Changed<EraseResult>> {
  const { fields, seqs } = await changeEvidence(resolve(data), tenant, "gateway evidence erase", (ledger, store) =>
    ledger.erase(tenant, request, (range) => rewriteRange(store, range)),
  );
  return { tenant, fields, seqs };
}

function printErased({ tenant, seqs, fields }: Changed<EraseResult>, json: true | undefined): void {
  if (json) print(JSON.stringify({ tenant, fields, seqs }));
  else if (fields > 0) print(`${tenant}: erased ${fields} fields in ${seqs.length} records`);
  if (fields > 0) return;
  process.exitCode = 1;
  say("nothing erased: no stored field of these records matches");
}

interface PruneOptions extends ChangeOptions {
  readonly before: string;
  readonly reason?: string;
}

/** `gateway evidence prune`. */
export async function pruneRecords(options: PruneOptions, command: Command): Promise<void> {
  const { before, reason, json } = options;
  const place = placeOf(options, command);
  const pruned =
    place === null
      ? await runJob<PruneResult>(options, evidenceOperations.pruneEvidence, { before, reason })
      : await pruneFolder(place, before, reason);
  const { tenant, records, first_kept: first } = pruned;
  if (json) print(JSON.stringify({ tenant, before, records, first_kept: first }));
  else print(`${tenant}: pruned ${records} records, the chain begins at record ${first}`);
  for (const note of notesOn(pruned, place)) say(note);
}

async function pruneFolder(
  { data, tenant, by }: Place,
  before: string,
  reason?: string,
): Promise<Changed<PruneResult>> {
  const pruned = await changeEvidence(resolve(data), tenant, "gateway evidence prune", (ledger, store) => {
    return ledger.prune(
      tenant,
      { before, reason, by },
      {
        compact: (range) => rewriteRange(store, range),
        forget: (firstKept) => pruneApprovals({ store, journal: ledger.approvals }, tenant, firstKept),
        onProgress: progressOf(tenant),
      },
    );
  });
  return { tenant, ...pruneResultOf(before, pruned) };
}

/** Explains which older records stay, and names the next step. */
function notesOn(
  { before, records, first_kept: firstKept, first_younger: firstYounger }: PruneResult,
  place: Place | null,
): readonly string[] {
  const kept = `records from ${firstKept} on stay, though they are older than ${before}: an action or approval among them is not over by record ${firstYounger}`;
  const check =
    place === null
      ? "`POST /admin/v1/evidence/verify` checks the rest"
      : `check the rest: gateway evidence verify --data ${place.data} --tenant ${place.tenant}`;
  const next =
    records === 0
      ? `nothing to prune: no record before ${before} may go`
      : `backups still hold what was pruned; ${check}`;
  return firstKept < firstYounger ? [kept, next] : [next];
}

const pollMs = 200;

/**
 * Starts a job at a gateway that serves, and returns its result. Throws as `callAdmin` does, EVIDENCE_JOB_FAILED where the
 * job failed or the gateway was restarted meanwhile.
 */
async function runJob<Result>(
  options: AdminOptions,
  operation: AdminOperation,
  values: Values,
): Promise<Changed<Result>> {
  const { id, tenant } = await callAdmin<EvidenceJob>(options, operation, values);
  const progress = progressOf(tenant);
  for (;;) {
    const jobs = await fetchWhole<EvidenceJob>(options, evidenceOperations.listEvidenceJobs);
    const job = jobs.find((each) => each.id === id);
    if (job === undefined)
      throw new GatewayError("EVIDENCE_JOB_FAILED", "the gateway no longer knows it; run it again");
    if (job.state === "failed") throw new GatewayError("EVIDENCE_JOB_FAILED", job.fault ?? undefined);
    if (job.state === "complete") return { tenant, ...(job.result as Result) };
    progress(job.verified, "sound");
    progress(job.deleted, "deleted");
    await sleep(pollMs);
  }
}

const progressEvery = 100_000;

function progressOf(tenant: string): NonNullable<PruneTools["onProgress"]> {
  const next = { sound: progressEvery, deleted: progressEvery };
  return (done, step) => {
    if (done < next[step]) return;
    next[step] = done - (done % progressEvery) + progressEvery;
    sayProgress(`${tenant}: ${done} records ${step} so far`);
  };
}

/** The name of the user who runs this command, as far as the machine knows it. */
export function currentUser(): string {
  try {
    return userInfo().username;
  } catch {
    return `user ${process.getuid?.() ?? "unknown"}`; // a container's user needs no name
  }
}
