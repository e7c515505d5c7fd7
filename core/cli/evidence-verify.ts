import { readFile, stat } from "node:fs/promises";
import { join, resolve } from "node:path";
import type { Command } from "commander";
import { GatewayError } from "../action/error.ts";
import type { VerifyingKey } from "../action/signing-key.ts";
import { evidenceRules } from "../compose/evidence-rules.ts";
import { describeFileError } from "../config/document.ts";
import { readChainName } from "../evidence/bundle/bundle-line.ts";
import { type BundleReport, verifyBundle } from "../evidence/bundle/verify.ts";
import { reasons } from "../evidence/record/reason.ts";
import type { OutsideTrust } from "../evidence/verify/folder-verdict.ts";
import { judgeFolder, openEvidenceFolder, openWitness, printReport } from "./evidence-folder.ts";
import { print } from "./print.ts";

interface VerifyOptions {
  readonly data?: string;
  readonly tenant?: string;
  readonly key: readonly VerifyingKey[];
  /** Places of notes: a notes file, a folder of them, or a URL. */
  readonly witness: readonly string[];
  readonly maxAge?: number;
  readonly json?: true;
}

/** `gateway evidence verify`. The exit code is the verdict. */
export async function verifyEvidence(
  bundle: string | undefined,
  options: VerifyOptions,
  command: Command,
): Promise<void> {
  const { data, tenant } = options;
  if ((bundle === undefined) === (data === undefined)) command.error("error: expected either a bundle or --data");
  if (bundle !== undefined && tenant !== undefined)
    command.error("error: a bundle is of one tenant: leave out --tenant");
  if (bundle !== undefined) await verifyBundleFile(bundle, options);
  else if (data !== undefined) await verifyFolder(data, options);
}

async function verifyFolder(data: string, options: VerifyOptions): Promise<void> {
  const maxAgeMs = options.maxAge === undefined ? undefined : options.maxAge * 1_000;
  const trust: OutsideTrust = {
    keys: options.key,
    rules: evidenceRules,
    witnesses: options.witness.map(openWitness),
    nowMs: Date.now(),
    maxAgeMs,
  };
  const folder = await openEvidenceFolder(resolve(data));
  try {
    const found = await judgeFolder(folder, trust, options.tenant);
    process.exitCode = found.exit;
    if (options.json) print(JSON.stringify(found));
    else printReport(found);
  } finally {
    await folder.close();
  }
}

/** Verifies a bundle, prints the verdict and sets the exit code to it. Throws INVALID_REQUEST for a file it cannot read. */
async function verifyBundleFile(path: string, options: VerifyOptions): Promise<void> {
  const bundle = await read(path, "a bundle", "`gateway evidence export` makes one");
  const notes = await Promise.all(options.witness.map((place) => readNotes(place, readChainName(bundle))));
  const report = verifyBundle(bundle, {
    keys: options.key,
    rules: evidenceRules,
    nowMs: Date.now(),
    ...(notes.length === 0 ? {} : { witness: notes.join("\n#\n") }),
    ...(options.maxAge === undefined ? {} : { maxAgeMs: options.maxAge * 1_000 }),
  });
  process.exitCode = report.exit;
  print(options.json ? JSON.stringify(report) : describeReport(path, report));
}

function describeReport(path: string, { verdict, first_bad: bad, warnings, checks, records }: BundleReport): string {
  const found = bad === null ? "" : `, ${bad.reason}${placeOf(bad)}`;
  const lines = [
    `${path}: ${verdict}${found}, ${records} records`,
    `passed: ${checks.length === 0 ? "nothing" : checks.join(", ")}`,
    ...warnings.map(
      ({ reason, seq }) => `warning: ${reason}${seq === undefined ? "" : ` at record ${seq}`}: ${reasons[reason].text}`,
    ),
  ];
  return lines.join("\n");
}

function placeOf({ file, seq }: NonNullable<BundleReport["first_bad"]>): string {
  return ` in ${file}${seq === undefined ? "" : ` at record ${seq}`}`;
}

async function readNotes(place: string, chain: string | undefined): Promise<string> {
  if (chain === undefined) return "";
  if (/^https?:\/\//.test(place)) return (await openWitness(place).latest(chain)) ?? "";
  const isFolder = (await stat(place).catch(() => undefined))?.isDirectory() === true;
  const next = "ask the witness for its notes of this chain: what is named may be another's";
  const notes = await read(isFolder ? join(place, `${chain}.notes`) : place, "the notes of a witness", next);
  return notes.toString("utf8");
}

async function read(path: string, expected: string, next: string): Promise<Buffer> {
  try {
    return await readFile(path);
  } catch (cause) {
    const found = `expected \`${path}\` to be ${expected}, got ${describeFileError(cause)}`;
    throw new GatewayError("INVALID_REQUEST", `${found}; ${next}`, { cause });
  }
}
