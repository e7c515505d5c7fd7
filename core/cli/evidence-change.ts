import { userInfo } from "node:os";
import { resolve } from "node:path";
import type { Command } from "commander";
import { pruneApprovals } from "../approval/history.ts";
import type { Erased, ErasureRequest } from "../evidence/retention/erasure.ts";
import type { Pruned, PruneTools } from "../evidence/retention/retention.ts";
import { compactRange } from "../store/open.ts";
import { changeEvidence } from "./evidence-folder.ts";
import { print, say, sayProgress } from "./print.ts";

interface ChangeOptions {
  readonly data: string;
  readonly tenant: string;
  readonly by?: string;
  readonly json?: true;
}

interface EraseOptions extends ChangeOptions {
  readonly session?: string;
  readonly seq?: number;
  readonly field: readonly string[];
  readonly reason: string;
}

/** `gateway evidence erase`. Ends with 1 where nothing was erased. */
export async function eraseFields(options: EraseOptions, command: Command): Promise<void> {
  const { data, tenant, session, seq, field: fields, reason, json } = options;
  const of = session !== undefined ? { session } : seq !== undefined ? { seq } : undefined;
  if (of === undefined) return command.error("error: expected `--session <id>` or `--seq <number>`");
  const request: ErasureRequest = { of, fields, reason, by: options.by ?? currentUser() };
  const erased = await changeEvidence(resolve(data), tenant, "gateway evidence erase", (ledger, store) =>
    ledger.erase(tenant, request, (range) => compactRange(store, range)),
  );
  printErased(tenant, erased, json);
}

function printErased(tenant: string, { seqs, fields }: Erased, json: true | undefined): void {
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
export async function pruneRecords({ data, tenant, before, reason, by, json }: PruneOptions): Promise<void> {
  const request = { before, reason, by: by ?? currentUser() };
  const pruned = await changeEvidence(resolve(data), tenant, "gateway evidence prune", (ledger, store) => {
    return ledger.prune(tenant, request, {
      compact: (range) => compactRange(store, range),
      forget: (firstKept) => pruneApprovals({ store, journal: ledger.approvals }, tenant, firstKept),
      onProgress: progressOf(tenant),
    });
  });
  const { records, firstKept: first } = pruned;
  if (json) print(JSON.stringify({ tenant, before, records, first_kept: first }));
  else print(`${tenant}: pruned ${records} records, the chain begins at record ${first}`);
  for (const note of notesOn(pruned, { data, tenant, before })) say(note);
}

/** Explains which older records stay, and names the next step. */
function notesOn(
  { records, firstKept, firstYounger }: Pruned,
  { data, tenant, before }: Pick<PruneOptions, "data" | "tenant" | "before">,
): readonly string[] {
  const kept = `records from ${firstKept} on stay, though they are older than ${before}: an action or approval among them is not over by record ${firstYounger}`;
  const next =
    records === 0
      ? `nothing to prune: no record before ${before} may go`
      : `backups still hold what was pruned; check the rest: gateway evidence verify --data ${data} --tenant ${tenant}`;
  return firstKept < firstYounger ? [kept, next] : [next];
}

const progressEvery = 100_000;

function progressOf(tenant: string): NonNullable<PruneTools["onProgress"]> {
  const next = { sound: progressEvery, deleted: progressEvery };
  return (done, step) => {
    if (done < next[step]) return;
    next[step] += progressEvery;
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
