import { readFile, stat } from "node:fs/promises";
import { join } from "node:path";
import { readChainName } from "../evidence/bundle/bundle-line.ts";
import { type BundleReport, verifyBundle } from "../evidence/bundle/verify.ts";
import { HttpWitness } from "../evidence/witness-http.ts";
import { GatewayError } from "../kernel/error.ts";
import type { VerifyingKey } from "../kernel/signing-key.ts";

export interface BundleOptions {
  readonly key: readonly VerifyingKey[];
  /** Where witnesses keep their notes: a notes file, a folder of them, or a URL. */
  readonly witness: readonly string[];
  readonly maxAge?: number;
  readonly json?: true;
}

/** Verifies a bundle, prints the verdict, and sets the exit code to it. Throws INVALID_REQUEST for what cannot be read. */
export async function verifyBundleFile(path: string, options: BundleOptions): Promise<void> {
  const bundle = await read(path);
  const notes = await Promise.all(options.witness.map((place) => readNotes(place, readChainName(bundle))));
  const report = verifyBundle(bundle, {
    keys: options.key,
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
