import { resolve } from "node:path";
import { Command, InvalidArgumentError } from "commander";
import { judgeList } from "../evidence/chain-list.ts";
import {
  type ChainVerdict,
  type Flaw,
  graded,
  judgeChain,
  judgeGone,
  type OutsideTrust,
} from "../evidence/folder-verdict.ts";
import type { Witness } from "../evidence/witness.ts";
import { FileWitness } from "../evidence/witness-file.ts";
import { HttpWitness } from "../evidence/witness-http.ts";
import { VerifyingKey } from "../kernel/signing-key.ts";
import { type EvidenceFolder, openEvidenceFolder } from "./evidence-folder.ts";
import { verifyBundleFile } from "./evidence-verify-bundle.ts";

interface VerifyOptions {
  readonly data?: string;
  readonly tenant?: string;
  readonly key: readonly VerifyingKey[];
  readonly witness: readonly string[];
  readonly maxAge?: number;
  readonly json?: true;
}

/** What `--json` prints of a data folder. */
interface FolderReport {
  readonly exit: number;
  readonly chains: readonly ChainVerdict[];
  /** Only where a witness has seen another list of chains. */
  readonly list?: Pick<ChainVerdict, "verdict" | "exit"> & { readonly first_bad: Flaw };
}

const progressEvery = 100_000;

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
    report(await judgeFolder(folder, trust, options.tenant), options.json);
  } finally {
    await folder.close();
  }
}

/** Every tenant that has evidence here, and those that a witness says had; or the one that is asked for. */
async function judgeFolder(
  folder: EvidenceFolder,
  trust: OutsideTrust,
  only: string | undefined,
): Promise<FolderReport> {
  const { store, marks } = folder;
  const { gone, flaw } = await judgeList(store, marks, trust.witnesses);
  const tenants = only === undefined ? [...new Set([...folder.tenants, ...gone.keys()])].sort() : [only];
  const chains: ChainVerdict[] = [];
  for (const tenant of tenants) {
    const lost = gone.get(tenant);
    const judge = () => judgeChain(store, tenant, marks.get(tenant), trust, progressOf(tenant));
    chains.push(lost === undefined ? await judge() : judgeGone(tenant, lost));
  }
  if (flaw === undefined || only !== undefined) return { exit: worstOf(chains), chains };
  const list = { ...graded(flaw.reason), first_bad: flaw };
  return { exit: worstOf([...chains, list]), chains, list };
}

/** The worst verdict counts: exit codes grow with what is wrong, and a folder that holds nothing attests to nothing. */
function worstOf(verdicts: readonly { readonly exit: number }[]): number {
  return verdicts.reduce((most, { exit }) => Math.max(most, exit), verdicts.length === 0 ? 50 : 0);
}

function report(found: FolderReport, json: true | undefined): void {
  process.exitCode = found.exit;
  if (json) return void process.stdout.write(`${JSON.stringify(found)}\n`);
  for (const chain of found.chains) process.stdout.write(describeChain(chain));
  if (found.list === undefined) return;
  const { verdict, first_bad: bad } = found.list;
  process.stdout.write(`list of chains: ${verdict}, ${bad.reason}: ${bad.detail}\n`);
}

function describeChain({ tenant, verdict, first_bad: bad, records, first_kept: first }: ChainVerdict): string {
  const found = `${tenant}: ${verdict}, ${records} records${first === undefined ? "" : `, pruned before ${first}`}`;
  if (bad === null) return `${found}\n`;
  const place = bad.seq === undefined ? "" : ` at record ${bad.seq}`;
  return `${found}, then ${bad.reason}${place}: ${bad.detail}\n`;
}

function progressOf(tenant: string): (checked: number) => void {
  let next = progressEvery;
  return (checked) => {
    if (checked < next) return;
    next += progressEvery;
    process.stderr.write(`${tenant}: ${checked} records sound so far\n`);
  };
}

function addKey(text: string, keys: readonly VerifyingKey[]): readonly VerifyingKey[] {
  const key = VerifyingKey.parse(text);
  if (key === undefined) throw new InvalidArgumentError("expected the base64 of 32 bytes");
  return [...keys, key];
}

function addText(text: string, texts: readonly string[]): readonly string[] {
  return [...texts, text];
}

function openWitness(place: string): Witness {
  const isUrl = /^https?:\/\//.test(place);
  return isUrl ? new HttpWitness({ name: place, url: place, headers: {} }) : new FileWitness(place, resolve(place));
}

function parseSeconds(text: string): number {
  if (/^\d{1,9}$/.test(text)) return Number(text);
  throw new InvalidArgumentError("expected whole seconds");
}
