import { readFile, stat } from "node:fs/promises";
import { join, resolve } from "node:path";
import { Command, InvalidArgumentError } from "commander";
import { GatewayError } from "../action/error.ts";
import type { VerifyingKey } from "../action/signing-key.ts";
import { evidenceRules } from "../compose/evidence-rules.ts";
import { readChainName } from "../evidence/bundle/bundle-line.ts";
import { type BundleReport, verifyBundle } from "../evidence/bundle/verify.ts";
import type { OutsideTrust } from "../evidence/verify/folder-verdict.ts";
import { HttpWitness } from "../evidence/witness/witness-http.ts";
import { judgeFolder, openEvidenceFolder, printReport } from "./evidence-folder.ts";
import { addKey, addText, openWitness } from "./extension-verify.ts";

interface VerifyOptions {
  readonly data?: string;
  readonly tenant?: string;
  readonly key: readonly VerifyingKey[];
  readonly witness: readonly string[];
  readonly maxAge?: number;
  readonly json?: true;
}

/** `gateway evidence verify`. */
export function evidenceVerifyCommand(): Command {
  return new Command("verify")
    .description(
      "verify an exported bundle, or the evidence in a data folder; exit 0 witnessed, 10 self-attested, 20 stale, 30 diverged, 40 invalid, 50 incomplete",
    )
    .argument("[bundle]", "a file that `gateway evidence export` wrote")
    .option("-d, --data <folder>", "data folder; no gateway may run on it")
    .option("--tenant <name>", "this tenant only (default: all)")
    .option("--key <base64>", "first public key of a chain, as its operator published it; repeatable", addKey, [])
    .option(
      "--witness <place>",
      "where a witness keeps its notes: a folder or URL, for a bundle a file too; repeatable",
      addText,
      [],
    )
    .option("--max-age <seconds>", "older latest checkpoints are stale", parseSeconds)
    .option("--json", "print JSON")
    .action(verify);
}

async function verify(bundle: string | undefined, options: VerifyOptions, command: Command): Promise<void> {
  const { data, tenant } = options;
  if ((bundle === undefined) === (data === undefined)) command.error("error: expected a bundle or --data, not both");
  if (bundle !== undefined && tenant !== undefined)
    command.error("error: a bundle is of one tenant: leave out --tenant");
  if (bundle !== undefined) await verifyBundleFile(bundle, options);
  else if (data !== undefined) await verifyFolder(data, options);
}

async function verifyFolder(data: string, options: VerifyOptions): Promise<void> {
  const folder = await openEvidenceFolder(resolve(data));
  const maxAgeMs = options.maxAge === undefined ? undefined : options.maxAge * 1_000;
  const trust: OutsideTrust = {
    keys: options.key,
    rules: evidenceRules,
    witnesses: options.witness.map(openWitness),
    nowMs: Date.now(),
    maxAgeMs,
  };
  try {
    const found = await judgeFolder(folder, trust, options.tenant);
    process.exitCode = found.exit;
    if (options.json) process.stdout.write(`${JSON.stringify(found)}\n`);
    else printReport(found);
  } finally {
    await folder.close();
  }
}

function parseSeconds(text: string): number {
  if (/^\d{1,9}$/.test(text)) return Number(text);
  throw new InvalidArgumentError("expected whole seconds");
}

interface BundleOptions {
  readonly key: readonly VerifyingKey[];
  /** Where witnesses keep their notes: a notes file, a folder of them, or a URL. */
  readonly witness: readonly string[];
  readonly maxAge?: number;
  readonly json?: true;
}

/** Verifies a bundle, prints the verdict, and sets the exit code to it. Throws INVALID_REQUEST for what cannot be read. */
async function verifyBundleFile(path: string, options: BundleOptions): Promise<void> {
  const bundle = await read(path);
  const notes = await Promise.all(options.witness.map((place) => readNotes(place, readChainName(bundle))));
  const report = verifyBundle(bundle, {
    keys: options.key,
    rules: evidenceRules,
    nowMs: Date.now(),
    ...(notes.length === 0 ? {} : { witness: notes.join("\n#\n") }),
    ...(options.maxAge === undefined ? {} : { maxAgeMs: options.maxAge * 1_000 }),
  });
  process.exitCode = report.exit;
  process.stdout.write(options.json ? `${JSON.stringify(report)}\n` : describe(path, report));
}

function describe(path: string, { verdict, first_bad: bad, warnings, checks, records }: BundleReport): string {
  const found = bad === null ? "" : `, ${bad.reason}${placeOf(bad)}`;
  const lines = [
    `${path}: ${verdict}${found}, ${records} records`,
    `passed: ${checks.length === 0 ? "nothing" : checks.join(", ")}`,
    ...warnings.map(({ reason, seq }) => `warning: ${reason} at record ${seq}`),
  ];
  return `${lines.join("\n")}\n`;
}

function placeOf({ file, seq }: NonNullable<BundleReport["first_bad"]>): string {
  return ` in ${file}${seq === undefined ? "" : ` at record ${seq}`}`;
}

async function readNotes(place: string, chain: string | undefined): Promise<string> {
  if (chain === undefined) return "";
  if (/^https?:\/\//.test(place)) {
    return (await new HttpWitness({ name: place, url: place, headers: {} }).latest(chain)) ?? "";
  }
  const isFolder = (await stat(place).catch(() => undefined))?.isDirectory() === true;
  return (await read(isFolder ? join(place, `${chain}.notes`) : place)).toString("utf8");
}

async function read(path: string): Promise<Buffer> {
  try {
    return await readFile(path);
  } catch (cause) {
    const { code } = cause as NodeJS.ErrnoException;
    throw new GatewayError("INVALID_REQUEST", `\`${path}\` cannot be read (${code ?? "unknown"})`, { cause });
  }
}
