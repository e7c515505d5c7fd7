import { randomBytes } from "node:crypto";
import { statSync } from "node:fs";
import { copyFile } from "node:fs/promises";
import { join, resolve } from "node:path";
import { contentDigest } from "../action/canonical-json.ts";
import { GatewayError } from "../action/error.ts";
import { evidenceRules } from "../compose/evidence-rules.ts";
import { EgressGuard } from "../egress/egress-guard.ts";

import { HighWaterFile, type Mark } from "../evidence/chain/high-water.ts";
import { KeyFolder } from "../evidence/key/key-folder.ts";
import { WrappingKeyFolder } from "../evidence/key/wrapping-key.ts";
import { Ledger } from "../evidence/ledger.ts";
import type { EvidenceStore } from "../evidence/record/key-space.ts";
import {
  type ChainVerdict,
  type Flaw,
  graded,
  judgeChain,
  judgeGone,
  judgeList,
  type OutsideTrust,
} from "../evidence/verify/folder-verdict.ts";
import type { Witness } from "../evidence/witness/witness.ts";
import { FileWitness } from "../evidence/witness/witness-file.ts";
import { HttpWitness } from "../evidence/witness/witness-http.ts";
import { listTenants } from "../store/key-range.ts";
import { openStore, type Store } from "../store/open.ts";
import { openSnapshot, removeSnapshots } from "../store/snapshot.ts";
import { lockWatch } from "../store/split-level.ts";
import { print, sayProgress } from "./print.ts";

/** The evidence in a data folder on which no gateway runs. Reading it changes nothing in the folder. */
export interface EvidenceFolder {
  readonly store: EvidenceStore;
  readonly marks: ReadonlyMap<string, Mark>;
  /** Every tenant that has evidence or a mark, sorted. */
  readonly tenants: readonly string[];
  close(): Promise<void>;
}

/** Throws STATE_UNUSABLE where the folder cannot be read, or a gateway runs on it. */
export async function openEvidenceFolder(dir: string): Promise<EvidenceFolder> {
  const snapshot = await openSnapshot(dir);
  try {
    const marks = await readMarks(join(dir, "high-water"), join(snapshot.folder, "high-water"));
    const tenants = new Set([...marks.keys(), ...(await listTenants(snapshot.store))]);
    return { store: snapshot.store, marks, tenants: [...tenants].sort(), close: () => snapshot.close() };
  } catch (error) {
    await snapshot.close();
    throw error;
  }
}

/**
 * Returns the marks in the file `path`, read through a `copy` that does not exist yet. None where the file is gone: a chain
 * without its mark is reported as broken.
 */
export async function readMarks(path: string, copy: string): Promise<ReadonlyMap<string, Mark>> {
  try {
    await copyFile(path, copy);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return new Map();
    throw error;
  }
  const file = await HighWaterFile.open(copy);
  await file.close();
  return file.marks;
}

/**
 * Opens the ledger of a data folder for one change of a tenant's evidence, recorded under the name of a tool, and closes it.
 * Throws STATE_UNUSABLE where a gateway runs on the folder, and where it holds no evidence of the tenant: no other folder
 * may become a data folder by it.
 */
export async function changeEvidence<T>(
  dir: string,
  tenant: string,
  tool: string,
  change: (ledger: Ledger, store: Store) => Promise<T>,
): Promise<T> {
  await checkTenantThere(dir, tenant);
  const store = await openStore({ dir, enabled: true });
  try {
    await removeSnapshots(dir);
    const ledger = await openOfflineLedger(store, { dir, keys: join(dir, "keys"), tool });
    return await change(ledger, store).finally(() => ledger.close());
  } finally {
    await store.close();
  }
}

/** Opens the ledger of a store in `dir`, with the keys of the folder `keys`; its records name `tool` as their writer. */
export function openOfflineLedger(
  store: Store,
  { dir, keys, tool }: { readonly dir: string; readonly keys: string; readonly tool: string },
): Promise<Ledger> {
  return Ledger.open({
    store,
    holdsStore: lockWatch(store, dir, true),
    highWaterPath: join(dir, "high-water"),
    keys: new KeyFolder(keys, randomBytes),
    wrappingKeys: new WrappingKeyFolder(keys, randomBytes),
    fieldPolicy: { storeValues: false, storeLabels: false, redactFields: [] },
    recordRules: evidenceRules,
    clock: Date.now,
    random: randomBytes,
    writerId: tool,
    configDigest: contentDigest(""), // no configuration is in force
  });
}

async function checkTenantThere(dir: string, tenant: string): Promise<void> {
  const folder = await openEvidenceFolder(dir);
  await folder.close();
  if (folder.tenants.includes(tenant)) return;
  throw new GatewayError("STATE_UNUSABLE", `expected a tenant with evidence in \`${dir}\`, got \`${tenant}\``);
}

/** The verdicts on a data folder, as `--json` prints them. */
export interface FolderReport {
  readonly exit: number;
  readonly chains: readonly ChainVerdict[];
  /** Present where a witness has seen another list of chains. */
  readonly list?: Pick<ChainVerdict, "verdict" | "exit"> & { readonly first_bad: Flaw };
}

const progressEvery = 100_000;

/** Verifies every tenant with evidence in the folder or in a witness's notes, or `only` one. */
export async function judgeFolder(folder: EvidenceFolder, trust: OutsideTrust, only?: string): Promise<FolderReport> {
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

/** The worst verdict counts: exit codes grow with the fault, and an empty folder proves nothing. */
function worstOf(verdicts: readonly { readonly exit: number }[]): number {
  return verdicts.reduce((worst, { exit }) => Math.max(worst, exit), verdicts.length === 0 ? 50 : 0);
}

/** Prints a report as text. */
export function printReport(found: FolderReport): void {
  for (const chain of found.chains) print(describeChain(chain));
  if (found.list === undefined) return;
  const { verdict, first_bad: bad } = found.list;
  print(`list of chains: ${verdict}, ${bad.reason}: ${bad.detail}`);
}

function describeChain({ tenant, verdict, first_bad: bad, records, first_kept: first }: ChainVerdict): string {
  const found = `${tenant}: ${verdict}, ${records} records${first === undefined ? "" : `, pruned before ${first}`}`;
  if (bad === null) return found;
  const place = bad.seq === undefined ? "" : ` at record ${bad.seq}`;
  return `${found}, then ${bad.reason}${place}: ${bad.detail}`;
}

function progressOf(tenant: string): (checked: number) => void {
  let next = progressEvery;
  return (checked) => {
    if (checked < next) return;
    next += progressEvery;
    sayProgress(`${tenant}: ${checked} records sound so far`);
  };
}

/** Opens a witness by the place of its notes: a folder or URL. Throws INVALID_REQUEST for a folder that is not there. */
export function openWitness(place: string): Witness {
  const isUrl = /^https?:\/\//.test(place);
  if (!isUrl) {
    if (statSync(place, { throwIfNoEntry: false })?.isDirectory() !== true)
      throw new GatewayError("INVALID_REQUEST", `expected the folder or URL of a witness's notes, got \`${place}\``);
    return new FileWitness(place, resolve(place));
  }
  // Named on the command line: the host may be on any network.
  const egress = new EgressGuard({ privateHosts: [new URL(place).hostname] });
  return new HttpWitness({ name: place, url: place, headers: {}, egress });
}
