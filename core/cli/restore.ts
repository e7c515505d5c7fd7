import { randomBytes } from "node:crypto";
import { lstat, mkdir, mkdtemp, readdir, rename, rm } from "node:fs/promises";
import { join, resolve } from "node:path";
import type { AbstractChainedBatch } from "abstract-level";
import { Command } from "commander";
import { GatewayError } from "../action/error.ts";
import { endRestored } from "../approval/start.ts";
import { assumePublished, type BackupHeader, refuse } from "../backup/content.ts";
import { type BackupSink, readBackup, type SoundBackup } from "../backup/read.ts";
import { evidenceRules } from "../compose/evidence-rules.ts";
import { HighWaterFile, type Mark } from "../evidence/chain/high-water.ts";
import { KeyFolder } from "../evidence/key/key-folder.ts";
import { listTenants } from "../evidence/record/key-space.ts";
import { listPublishedHeads } from "../evidence/witness/published-heads.ts";
import { syncFolder } from "../store/folder.ts";
import { openStore, type Store } from "../store/open.ts";
import { isLocked, openSnapshot } from "../store/snapshot.ts";
import { currentUser, parseText } from "./admin-client.ts";
import {
  type EvidenceFolder,
  type FolderReport,
  judgeFolder,
  openOfflineLedger,
  readMarks,
} from "./evidence-folder.ts";
import { addText, openWitness } from "./extension-verify.ts";

interface RestoreOptions {
  readonly data: string;
  readonly witness: readonly string[];
  readonly acceptRollback?: string;
  readonly replace?: true;
  readonly by?: string;
  readonly json?: true;
}

/** What was restored. */
interface Restored {
  readonly tenants: number;
  readonly approvalsEnded: number;
}

/** `gateway restore`. */
export function restoreCommand(): Command {
  return new Command("restore")
    .description("restore a backup into a data folder; whatever is wrong with it, the folder stays as it was")
    .argument("<file>", "a file that the gateway wrote")
    .requiredOption(
      "-d, --data <folder>",
      "data folder that holds the `keys` folder of the backup's gateway, and no state",
    )
    .option("--witness <place>", "where a witness keeps its notes: a folder or URL; repeatable", addText, [])
    .option(
      "--accept-rollback <reason>",
      "restore what is older than a witness has seen; kept in the record",
      parseText,
    )
    .option("--replace", "move the state that is there aside, where no gateway runs on it")
    .option("--by <name>", "who asked for it; kept in the record (default: the user this runs as)", parseText)
    .option("--json", "print JSON")
    .action(restore);
}

async function restore(file: string, options: RestoreOptions): Promise<void> {
  const [path, data] = [resolve(file), resolve(options.data)];
  const sound = await readBackup(path);
  await checkOwn(sound, data);
  const target = await RestoreTarget.open(data, options.replace === true);
  let done: Restored;
  let aside: string | undefined;
  try {
    const staged = await stageBackup(path, sound, target.stage);
    try {
      await checkAge(staged, target, options);
      done = await settle(staged, sound.header, { ...options, data, stage: target.stage });
    } finally {
      await staged.close();
    }
    aside = await target.commit();
  } catch (error) {
    await target.abandon();
    throw error;
  }
  tell(sound.header, done, aside, options);
}

/** Whoever holds the key that sealed it made it. */
async function checkOwn({ key }: SoundBackup, data: string): Promise<void> {
  const keys = join(data, "keys");
  if ((await new KeyFolder(keys, randomBytes).find(key.id)) !== undefined) return;
  throw refuse(
    `it is sealed by key \`${key.id}\`, which is not in \`${keys}\`; put the keys of its gateway there first`,
  );
}

/** Throws BACKUP_REFUSED where something speaks against it that nobody accepted, or nobody can. */
async function checkAge(staged: StagedBackup, target: RestoreTarget, options: RestoreOptions): Promise<void> {
  const { witness, acceptRollback } = options;
  const trust = {
    keys: [],
    rules: evidenceRules,
    witnesses: witness.map(openWitness),
    nowMs: Date.now(),
    maxAgeMs: undefined,
  };
  const report = await judgeFolder(staged, trust);
  const doubts = await findDoubts(staged, report, await target.formerMarks());
  const grave = doubts.filter(({ isAge }) => !isAge);
  if (grave.length > 0) throw refuse(grave.map(({ text }) => text).join("; "));
  if (doubts.length === 0) return;
  const texts = doubts.map(({ text }) => text);
  if (acceptRollback === undefined)
    throw refuse(`${texts.join("; ")}; \`--accept-rollback <reason>\` restores it all the same`);
  for (const text of texts) process.stderr.write(`gateway: accepted: ${text}\n`);
}

/** Opens the evidence as a start does, ends what waits for review or use, and records the restore. */
async function settle(
  { store }: StagedBackup,
  { name, madeAt }: BackupHeader,
  { data, stage, by = currentUser(), acceptRollback: rollback }: SettleOptions,
): Promise<Restored> {
  const ledger = await openOfflineLedger(store, { dir: stage, keys: join(data, "keys"), tool: "gateway restore" });
  try {
    const chains = ledger.status();
    const refused = chains.find(({ state }) => state !== "ready");
    if (refused !== undefined) throw refuse(refused.reason ?? `chain of tenant \`${refused.tenant}\` is refused`);
    const tenants = chains.filter(({ seq }) => seq >= 0).map(({ tenant }) => tenant);
    const approvalsEnded = await endRestored({ store, journal: ledger.approvals, clock: Date.now }, tenants);
    const detail = { action: "restore", backup: name, made_at: madeAt, by, rollback: rollback ?? null };
    for (const tenant of tenants) await ledger.recordEvent(tenant, "admin", detail);
    return { tenants: tenants.length, approvalsEnded };
  } finally {
    await ledger.close();
  }
}

interface SettleOptions extends RestoreOptions {
  readonly stage: string;
}

function tell(
  { name, madeAt }: BackupHeader,
  done: Restored,
  aside: string | undefined,
  options: RestoreOptions,
): void {
  const { tenants, approvalsEnded: ended } = done;
  const told = { backup: name, made_at: madeAt, tenants, approvals_ended: ended, replaced: aside ?? null };
  if (options.json) process.stdout.write(`${JSON.stringify(told)}\n`);
  else process.stdout.write(`${name}: restored as of ${madeAt}, ${tenants} tenants, ${ended} approvals ended\n`);
  if (aside !== undefined) process.stderr.write(`gateway: what was there is in ${aside}\n`);
  if (options.acceptRollback === undefined) return;
  process.stderr.write(
    "gateway: a tenant of whom a witness has seen more is refused until that witness's notes are set aside\n",
  );
}

/** Why something should not be restored. */
interface Doubt {
  readonly text: string;
  /** It may be as old as that, and nothing else: a person who knows why may accept it. */
  readonly isAge: boolean;
}

/**
 * What speaks against restoring a backup: chains that are not sound, witnesses that have seen more, and where a witness
 * was told of a chain, that none was named. `former` are the marks of the state it replaces; undefined where they cannot
 * be read.
 */
async function findDoubts(
  staged: StagedBackup,
  { chains, list }: FolderReport,
  former: ReadonlyMap<string, Mark> | undefined,
): Promise<readonly Doubt[]> {
  const told = new Set((await listPublishedHeads(staged.store)).flat().map(({ chain }) => chain));
  const doubts: Doubt[] = [];
  for (const { tenant, verdict, first_bad: bad } of chains) {
    const chain = staged.marks.get(tenant)?.chain ?? "";
    // A chain that was named, and held nothing yet.
    const isUnborn = staged.marks.get(tenant)?.seq === -1 && bad?.reason === "missing_record";
    if (bad !== null && !isUnborn) {
      // What a witness says has no place in the chain; what is wrong inside it has.
      const isAge = bad.reason === "behind_witness" && bad.seq === undefined;
      doubts.push({ text: `chain of tenant \`${tenant}\`: ${bad.detail}`, isAge });
    } else if (verdict === "self-attested" && told.has(chain)) {
      doubts.push({ text: `chain of tenant \`${tenant}\` has a witness; name it with --witness`, isAge: true });
    }
  }
  if (list !== undefined) doubts.push({ text: list.first_bad.detail, isAge: true });
  return [...doubts, ...formerDoubts(staged.marks, former)];
}

/** The state that is replaced is a witness too, as long as it says anything. */
function formerDoubts(
  marks: ReadonlyMap<string, Mark>,
  former: ReadonlyMap<string, Mark> | undefined,
): readonly Doubt[] {
  if (former === undefined) return [{ text: "the marks of what is replaced cannot be read", isAge: true }];
  return [...former.values()].flatMap(({ tenant, chain, seq }) => {
    const mark = marks.get(tenant);
    const kept = mark?.chain === chain ? mark.seq : -1;
    if (kept >= seq) return [];
    const text = `chain of tenant \`${tenant}\`: what is replaced has ${seq + 1} records, the backup ${kept + 1}`;
    return [{ text, isAge: true }];
  });
}

const prefix = ".restore-";
/** In this order: marks without records are a chain that was cut, which no gateway serves. */
const parts = ["high-water", "state"] as const;

/**
 * A data folder that something is restored into. Everything is laid out in a folder inside it, and moved to its place in
 * the end; until then the data folder is as it was.
 */
class RestoreTarget {
  readonly #data: string;
  readonly #held: readonly string[];
  /** Where the new content is laid out. */
  readonly stage: string;

  private constructor(data: string, held: readonly string[], stage: string) {
    this.#data = data;
    this.#held = held;
    this.stage = stage;
  }

  /**
   * Throws BACKUP_REFUSED where the folder holds state and may not `replace` it, and STATE_UNUSABLE where a gateway runs
   * on it.
   */
  static async open(data: string, replace: boolean): Promise<RestoreTarget> {
    const held: string[] = [];
    for (const part of parts) if (await isThere(join(data, part))) held.push(part);
    if (held.length > 0 && !replace) {
      throw refuse(`\`${data}\` is not empty; choose another folder, or --replace what it holds`);
    }
    if (held.includes("state")) await checkIdle(data);
    for (const name of await readdir(data)) {
      if (name.startsWith(prefix)) await rm(join(data, name), { recursive: true });
    }
    return new RestoreTarget(data, held, await mkdtemp(join(data, prefix)));
  }

  /** What the state that is replaced promised; undefined where its marks cannot be read. */
  async formerMarks(): Promise<ReadonlyMap<string, Mark> | undefined> {
    try {
      return await readMarks(join(this.#data, "high-water"), join(this.stage, "former-high-water"));
    } catch (error) {
      if (error instanceof GatewayError) return undefined;
      throw error;
    }
  }

  /** Moves what was there aside, and the new content to its place. Durable when it resolves. Returns where the old is. */
  async commit(): Promise<string | undefined> {
    const aside = this.#held.length === 0 ? undefined : await this.#moveAside();
    for (const part of parts) {
      // COMMIT POINT: with the second, the folder holds what was restored.
      await rename(join(this.stage, part), join(this.#data, part));
      await syncFolder(this.#data);
    }
    await this.abandon();
    return aside;
  }

  /** Removes what was laid out. */
  async abandon(): Promise<void> {
    await rm(this.stage, { recursive: true, force: true });
  }

  async #moveAside(): Promise<string> {
    const aside = join(this.#data, `replaced-${new Date().toISOString().replace(/[-:.]/g, "")}`);
    await mkdir(aside, { mode: 0o700 });
    for (const part of this.#held) await rename(join(this.#data, part), join(aside, part));
    await syncFolder(aside);
    await syncFolder(this.#data);
    return aside;
  }
}

/** Any other fault of the state is why it is replaced. */
async function checkIdle(data: string): Promise<void> {
  try {
    await (await openSnapshot(data)).close();
  } catch (error) {
    if (isLocked(error)) throw error;
  }
}

async function isThere(path: string): Promise<boolean> {
  try {
    await lstat(path);
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return false;
    throw error;
  }
}

/** What a backup holds, as a data folder without keys. */
interface StagedBackup extends EvidenceFolder {
  readonly store: Store;
}

/**
 * Lays a sound backup out in an empty folder: its store in `state`, its marks in `high-water`. Durable when it resolves.
 * Throws BACKUP_REFUSED where the file is not what `sound` was read from any more.
 */
export async function stageBackup(path: string, sound: SoundBackup, dir: string): Promise<StagedBackup> {
  const sink = new StoreSink(await openStore({ dir, enabled: true }));
  try {
    const read = await readBackup(path, { sink });
    if (read.root !== sound.root || read.lines !== sound.lines) throw refuse("it changed while it was read");
  } finally {
    await sink.store.close();
  }
  await writeMarks(join(dir, "high-water"), sink.marks);
  // Opened anew: what the database had only logged becomes tables, and a store of another format is refused.
  const store = await openStore({ dir, enabled: true });
  const marks = new Map(sink.marks.map((mark) => [mark.tenant, mark]));
  const tenants = [...new Set([...marks.keys(), ...(await listTenants(store))])].sort();
  await assumePublished(store, tenants);
  return { store, marks, tenants, close: () => store.close() };
}

async function writeMarks(path: string, marks: readonly Mark[]): Promise<void> {
  const file = await HighWaterFile.open(path);
  try {
    await file.advance(marks);
  } finally {
    await file.close();
  }
}

class StoreSink implements BackupSink {
  readonly store: Store;
  readonly marks: Mark[] = [];
  #batch: AbstractChainedBatch<Store, string, string>;

  constructor(store: Store) {
    this.store = store;
    this.#batch = store.batch();
  }

  mark(mark: Mark): void {
    this.marks.push(mark);
  }

  entry(key: string, value: string): void {
    this.#batch.put(key, value);
  }

  async flush(): Promise<void> {
    await this.#batch.write();
    this.#batch = this.store.batch();
  }
}
