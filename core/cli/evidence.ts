import { writeFile } from "node:fs/promises";
import { resolve } from "node:path";
import { Command, InvalidArgumentError, Option } from "commander";
import { contentDigest } from "../action/canonical-json.ts";
import { GatewayError } from "../action/error.ts";
import { asciiJson } from "../action/json.ts";
import { forgetApprovals } from "../approval/history.ts";
import type { Erased, ErasureRequest } from "../evidence/retention/erasure.ts";
import type { Pruned, PruneTools } from "../evidence/retention/retention.ts";
import { compactRange } from "../store/folder.ts";
import { type AdminOptions, adminOption, askAdmin, currentUser, parseSessionId, parseText } from "./admin-client.ts";
import { changeEvidence } from "./evidence-folder.ts";
import { evidenceKeysCommand } from "./evidence-keys.ts";
import { evidenceVerifyCommand } from "./evidence-verify.ts";
import { print, say, tellProgress } from "./print.ts";

/** `gateway evidence`. */
export function evidenceCommand(): Command {
  return new Command("evidence")
    .description("the evidence of what agents did")
    .addCommand(evidenceVerifyCommand())
    .addCommand(evidenceExportCommand())
    .addCommand(evidenceReportCommand())
    .addCommand(evidenceKeysCommand())
    .addCommand(evidenceEraseCommand())
    .addCommand(evidencePruneCommand());
}

interface EraseOptions {
  readonly data: string;
  readonly tenant: string;
  readonly session?: string;
  readonly seq?: number;
  readonly field: readonly string[];
  readonly reason: string;
  readonly by?: string;
  readonly json?: true;
}

const fieldPattern = /^(?:\*|(?:arguments|output)\.[^\p{Cc}\p{Cs}]{0,256})$/u;

/** `gateway evidence erase`. */
function evidenceEraseCommand(): Command {
  return new Command("erase")
    .description(
      "erase arguments and answers for good; records, proofs and checkpoints stay valid, and a record says so",
    )
    .requiredOption("-d, --data <folder>", "data folder; no gateway may run on it")
    .requiredOption("--tenant <name>", "whose evidence")
    .addOption(new Option("--session <id>", "in every record of this session").conflicts("seq"))
    .addOption(new Option("--seq <number>", "in this record alone").argParser(parseSeq))
    .requiredOption(
      "--field <pattern>",
      "`arguments.<name>`, `output.<name>`, with `*` for any characters, or `*`; repeatable",
      addField,
    )
    .requiredOption("--reason <text>", "why; kept in the record", parseText)
    .option("--by <name>", "who asked for it; kept in the record (default: the user this runs as)", parseText)
    .option("--json", "print JSON")
    .action(eraseFields);
}

async function eraseFields(options: EraseOptions, command: Command): Promise<void> {
  const { data, tenant, session, seq, field: fields, reason, json } = options;
  const of = session !== undefined ? { session } : seq !== undefined ? { seq } : undefined;
  if (of === undefined) return command.error("error: expected `--session <id>` or `--seq <number>`");
  const request: ErasureRequest = { of, fields, reason, by: options.by ?? currentUser() };
  const erased = await changeEvidence(resolve(data), tenant, "gateway evidence erase", (ledger, store) =>
    ledger.erase(tenant, request, (range) => compactRange(store, range)),
  );
  report(tenant, erased, json);
}

function report(tenant: string, { seqs, fields }: Erased, json: true | undefined): void {
  if (json) process.stdout.write(`${JSON.stringify({ tenant, fields, seqs })}\n`);
  else if (fields > 0) process.stdout.write(`${tenant}: erased ${fields} fields in ${seqs.length} records\n`);
  if (fields > 0) return;
  process.exitCode = 1;
  process.stderr.write("gateway: nothing erased: no kept field of these records fits\n");
}

function addField(text: string, fields: readonly string[] = []): readonly string[] {
  if (fieldPattern.test(text)) return [...fields, text];
  throw new InvalidArgumentError("expected `arguments.<name>`, `output.<name>` or `*`");
}

function parseSeq(text: string): number {
  if (/^\d{1,15}$/.test(text)) return Number(text);
  throw new InvalidArgumentError("expected the number of a record");
}

interface ExportOptions extends AdminOptions {
  readonly file: string;
  readonly redact: readonly string[];
  readonly json?: true;
}

interface ReportOptions extends ExportOptions {
  readonly format: "md" | "html" | "json";
}

/** `gateway evidence export`: a session's bundle, from a running gateway. */
function evidenceExportCommand(): Command {
  return sessionCommand("export")
    .description("write all evidence of a session, with what is needed to verify it anywhere, into one file")
    .action(exportSession);
}

/** `gateway evidence report`: the same for a person to read. */
function evidenceReportCommand(): Command {
  return sessionCommand("report")
    .description("write what happened in a session as a page for a person to read")
    .addOption(new Option("--format <format>", "how it is written").choices(["md", "html", "json"]).default("md"))
    .action(reportSession);
}

function sessionCommand(name: string): Command {
  return new Command(name)
    .argument("<session-id>", "as `GET /admin/v1/evidence/sessions` lists it", parseSessionId)
    .requiredOption("--file <path>", "where to write; must not exist yet")
    .option("--redact <seq.member.field>", "withhold a field: `12.arguments.password`; repeatable", addText, [])
    .addOption(adminOption())
    .option("--json", "print JSON: what was written where");
}

async function exportSession(session: string, options: ExportOptions): Promise<void> {
  await save(session, "export", new URLSearchParams(), options);
}

async function reportSession(session: string, options: ReportOptions): Promise<void> {
  await save(session, "report", new URLSearchParams({ format: options.format }), options);
}

async function save(session: string, what: string, query: URLSearchParams, options: ExportOptions): Promise<void> {
  for (const field of options.redact) query.append("redact", field);
  const body = await askAdmin(options, `/admin/v1/evidence/sessions/${session}/${what}?${query}`);
  try {
    // It may hold what agents sent and received: nobody else on this machine is to read it.
    await writeFile(options.file, body, { flag: "wx", mode: 0o600 });
  } catch (cause) {
    const why = (cause as NodeJS.ErrnoException).code === "EEXIST" ? "exists already" : "cannot be written";
    throw new GatewayError("INVALID_REQUEST", `\`${options.file}\` ${why}; choose another --file`, { cause });
  }
  const { file } = options;
  if (options.json) print(asciiJson({ session, file, bytes: body.length, digest: contentDigest(body) }));
  say(`wrote ${file}, ${body.length} bytes`);
}

function addText(text: string, texts: readonly string[]): readonly string[] {
  return [...texts, text];
}

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
function evidencePruneCommand(): Command {
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
