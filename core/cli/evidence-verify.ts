import { resolve } from "node:path";
import { Command, InvalidArgumentError } from "commander";
import type { OutsideTrust } from "../evidence/folder-verdict.ts";
import type { VerifyingKey } from "../kernel/signing-key.ts";
import { openEvidenceFolder } from "./evidence-folder.ts";
import { verifyBundleFile } from "./evidence-verify-bundle.ts";
import { judgeFolder, printReport } from "./folder-report.ts";
import { addKey, addText, openWitness } from "./trust-option.ts";

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
