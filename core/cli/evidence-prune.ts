import { resolve } from "node:path";
import { Command, InvalidArgumentError } from "commander";
import { forgetApprovals } from "../approval/retention.ts";
import type { Pruned, PruneTools } from "../evidence/retention.ts";
import { compactRange } from "../store/compact.ts";
import { changeEvidence } from "./offline-ledger.ts";
import { tellProgress } from "./print.ts";
import { currentUser, parseText } from "./requester.ts";

interface PruneOptions {
  readonly data: string;
  readonly tenant: string;
  readonly before: string;
  readonly reason?: string;
  readonly by?: string;
  readonly json?: true;
}

const timePattern = /^(\d{4}-\d\d-\d\d)[Tt]\d\d:\d\d:\d\d(?:\.\d{1,9})?(?:[Zz]|[+-]\d\d:\d\d)$/;
const progressEvery = 100_000;

/** `gateway evidence prune`. */
export function evidencePruneCommand(): Command {
  return new Command("prune")
    .description(
      "delete a tenant's records that are older than it has to keep; what stays verifies as before, and a record says so",
    )
    .requiredOption("-d, --data <folder>", "data folder; no gateway may run on it")
    .requiredOption("--tenant <name>", "whose evidence")
    .requiredOption("--before <time>", "records of this RFC 3339 time and later stay", parsePast)
    .option("--reason <text>", "why; kept in the record", parseText)
    .option("--by <name>", "who asked for it; kept in the record (default: the user this runs as)", parseText)
    .option("--json", "print JSON")
    .action(pruneRecords);
}

async function pruneRecords({ data, tenant, before, reason, by, json }: PruneOptions): Promise<void> {
  const request = { before, reason, by: by ?? currentUser() };
  const pruned = await changeEvidence(resolve(data), tenant, "gateway evidence prune", (ledger, store) => {
    return ledger.prune(tenant, request, {
      compact: (range) => compactRange(store, range),
      forget: (firstKept) => forgetApprovals({ store, journal: ledger.approvals }, tenant, firstKept),
      onProgress: progressOf(tenant),
    });
  });
  const { records, firstKept: first } = pruned;
  if (json) process.stdout.write(`${JSON.stringify({ tenant, before, records, first_kept: first })}\n`);
  else process.stdout.write(`${tenant}: pruned ${records} records, the chain begins at record ${first}\n`);
  process.stderr.write(adviceOn(pruned, { data, tenant, before }));
}

/** What the numbers alone do not say. */
function adviceOn(
  { records, firstKept, firstYounger }: Pruned,
  { data, tenant, before }: Pick<PruneOptions, "data" | "tenant" | "before">,
): string {
  const kept =
    firstKept < firstYounger
      ? `gateway: records from ${firstKept} on stay, though they are older than ${before}: an action or approval among them is not over by record ${firstYounger}\n`
      : "";
  return records === 0
    ? `${kept}gateway: nothing to prune: no record before ${before} may go\n`
    : `${kept}gateway: backups still hold what was pruned; check the rest: gateway evidence verify --data ${data} --tenant ${tenant}\n`;
}

function progressOf(tenant: string): NonNullable<PruneTools["onProgress"]> {
  const next = { sound: progressEvery, deleted: progressEvery };
  return (done, what) => {
    if (done < next[what]) return;
    next[what] += progressEvery;
    tellProgress(`${tenant}: ${done} records ${what} so far`);
  };
}

/** A time that has been, as records have it. A day that its month does not have would shift to the next one. */
function parsePast(text: string): string {
  const [, day = ""] = timePattern.exec(text) ?? [];
  const ms = Date.parse(text);
  const isDay = day !== "" && new Date(`${day}T00:00:00Z`).toISOString().startsWith(day);
  if (!isDay || Number.isNaN(ms)) throw new InvalidArgumentError("expected an RFC 3339 time: 2026-01-31T00:00:00Z");
  if (ms > Date.now()) throw new InvalidArgumentError("expected a time that has been");
  return new Date(ms).toISOString();
}
