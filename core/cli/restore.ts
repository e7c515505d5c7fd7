import { randomBytes } from "node:crypto";
import { lstat, mkdir, mkdtemp, readdir, rename, rm } from "node:fs/promises";
import { dirname, join, resolve } from "node:path";
import type { AbstractChainedBatch } from "abstract-level";
import { GatewayError } from "../action/error.ts";
import { expireRestored } from "../approval/restore.ts";
import { assumePublished, type BackupHeader, refuse } from "../backup/content.ts";
import { type BackupSink, readBackup, type SoundBackup } from "../backup/read.ts";
import { evidenceRules } from "../compose/evidence-rules.ts";
import { HighWaterFile, type Mark } from "../evidence/chain/high-water.ts";
import { KeyFolder } from "../evidence/key/key-folder.ts";
import { listPublishedHeads } from "../evidence/witness/published-heads.ts";
import { syncFolder } from "../store/folder.ts";
import { listTenants } from "../store/key-range.ts";
import { openStore, type Store, takeLock } from "../store/open.ts";
import { lockedFault } from "../store/snapshot.ts";
import { currentUser } from "./evidence-change.ts";
import {
  type EvidenceFolder,
  type FolderReport,
  judgeFolder,
  openOfflineLedger,
  openWitness,
  readMarks,
} from "./evidence-folder.ts";
import { print, say } from "./print.ts";

interface RestoreOptions {
  readonly data: string;
  readonly witness: readonly string[];
  readonly acceptRollback?: string;
  readonly replace?: true;
  readonly by?: string;
  readonly json?: true;
}

interface Restored {
  readonly tenants: number;
  readonly approvalsEnded: number;
}

/** `gateway restore`. */
export async function restore(file: string, options: RestoreOptions): Promise<void> {
  const [path, data] = [resolve(file), resolve(options.data)];
  const sound = await readBackup(path);
  await checkOwn(sound, data);
  const target = await RestoreTarget.open(data, options.replace === true);
  let done: Restored;
  let replaced: string | undefined;
  try {
    const staged = await stageBackup(path, sound, target.stage);
    try {
      await checkAge(staged, target, options);
      done = await settle(staged, sound.header, { ...options, data, stage: target.stage });
    } finally {
      await staged.close();
    }
    replaced = await target.commit();
  } catch (error) {
    await target.abandon();
    throw error;
  }
  printRestored(sound.header, done, replaced, options);
  await sayMark(data, replaced !== undefined || options.acceptRollback !== undefined);
}

/** Throws BACKUP_REFUSED unless the data folder holds the key that sealed the backup: only its own gateway could seal it. */
async function checkOwn({ key }: SoundBackup, data: string): Promise<void> {
  const keys = join(data, "keys");
  if ((await new KeyFolder(keys, randomBytes).find(key.id)) !== undefined) return;
  throw refuse(
    `it is sealed by key \`${key.id}\`, which is not in \`${keys}\`; put the keys of its gateway there first`,
  );
}

/** Throws BACKUP_REFUSED for faults, and for a backup that is older than other notes where `--accept-rollback` is missing. */
async function checkAge(staged: StagedBackup, target: RestoreTarget, options: RestoreOptions): Promise<void> {
  const { witness, acceptRollback } = options;
  const report = await judgeStaged(staged, witness);
  const objections = await findObjections(staged, report, await target.formerMarks());
  const faults = objections.filter(({ isAge }) => !isAge);
  if (faults.length > 0) throw refuse(faults.map(({ text }) => text).join("; "));
  if (objections.length === 0) return;
  const texts = objections.map(({ text }) => text);
  if (acceptRollback === undefined)
    throw refuse(`${texts.join("; ")}; \`--accept-rollback <reason>\` restores it anyway`);
  for (const text of texts) say(`accepted: ${text}`);
}

/** Opens the evidence as a start does, expires approvals that are pending or unused, and records the restore. */
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
    const approvalsEnded = await expireRestored({ store, journal: ledger.approvals, clock: Date.now }, tenants);
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

function printRestored(
  { name, madeAt }: BackupHeader,
  { tenants, approvalsEnded: ended }: Restored,
  replaced: string | undefined,
  options: RestoreOptions,
): void {
  const summary = { backup: name, made_at: madeAt, tenants, approvals_ended: ended, replaced: replaced ?? null };
  if (options.json) print(JSON.stringify(summary));
  else print(`${name}: restored as of ${madeAt}, ${tenants} tenants, ${ended} approvals ended`);
  if (replaced !== undefined) say(`the replaced state is in ${replaced}`);
  if (options.acceptRollback === undefined) return;
  say("tenants of whom a witness has seen more are refused until the notes of that witness are set aside");
}

/**
 * Says what comes of the mark outside the data folder, which the folder does not name: by the names that `gateway init` and
 * local mode give it, or by its setting where `isBehind`, which a mark elsewhere would have seen.
 */
async function sayMark(data: string, isBehind: boolean): Promise<void> {
  const named: string[] = [];
  for (const path of [join(dirname(data), "gateway.mark"), `${data}.mark`]) if (await isThere(path)) named.push(path);
  if (named.length === 0 && !isBehind) return;
  const mark = named.length === 0 ? "the file of `state.mark`" : named.map((path) => `\`${path}\``).join(" and ");
  const next = "a start refuses until that file is moved aside, and then ends all live approvals";
  say(`the mark stays as it was, ${mark}: where it has seen more than the backup, ${next}`);
}

/** A reason against restoring a backup. */
interface Objection {
  readonly text: string;
  /** The backup may only be old, not faulty: a person who knows why can accept it. */
  readonly isAge: boolean;
}

/**
 * Returns the reasons against restoring a backup: chains that are not sound, witnesses that have seen more, and chains with
 * published heads of which no witness was named. `former` are the marks of the replaced state; undefined where they
 * cannot be read.
 */
async function findObjections(
  staged: StagedBackup,
  { chains, list }: FolderReport,
  former: ReadonlyMap<string, Mark> | undefined,
): Promise<readonly Objection[]> {
  const published = new Set((await listPublishedHeads(staged.store)).flat().map(({ chain }) => chain));
  const objections: Objection[] = [];
  for (const { tenant, verdict, first_bad: bad } of chains) {
    const chain = staged.marks.get(tenant)?.chain ?? "";
    // A chain with a name and no record yet.
    const isEmpty = staged.marks.get(tenant)?.seq === -1 && bad?.reason === "missing_record";
    if (bad !== null && !isEmpty) {
      // A fault inside the chain has a record number; a witness's objection has none.
      const isAge = bad.reason === "behind_witness" && bad.seq === undefined;
      objections.push({ text: `chain of tenant \`${tenant}\`: ${bad.detail}`, isAge });
    } else if (verdict === "self-attested" && published.has(chain)) {
      objections.push({ text: `chain of tenant \`${tenant}\` has a witness; name it with --witness`, isAge: true });
    }
  }
  if (list !== undefined) objections.push({ text: list.first_bad.detail, isAge: true });
  return [...objections, ...formerObjections(staged.marks, former)];
}

/** The replaced state is a witness, too, where its marks can be read. */
function formerObjections(
  marks: ReadonlyMap<string, Mark>,
  former: ReadonlyMap<string, Mark> | undefined,
): readonly Objection[] {
  if (former === undefined) return [{ text: "the marks of the replaced state cannot be read", isAge: true }];
  return [...former.values()].flatMap(({ tenant, chain, seq }) => {
    const mark = marks.get(tenant);
    const kept = mark?.chain === chain ? mark.seq : -1;
    if (kept >= seq) return [];
    const text = `chain of tenant \`${tenant}\`: the replaced state has ${seq + 1} records, the backup ${kept + 1}`;
    return [{ text, isAge: true }];
  });
}

const prefix = ".restore-";
/** Moved in this order: no gateway serves marks without records, so an interruption is noticed. */
const parts = ["high-water", "state"] as const;

/**
 * A data folder to restore into. New content is staged in a folder inside it and moved to its place at the end; until then
 * the data folder is unchanged.
 */
class RestoreTarget {
  readonly #data: string;
  readonly #held: readonly string[];
  /** Keeps a gateway from starting on the state that is replaced: what it recorded meanwhile would be lost unseen. */
  readonly #lock: AsyncDisposable | undefined;
  /** Folder of the new content. */
  readonly stage: string;

  private constructor(data: string, held: readonly string[], lock: AsyncDisposable | undefined, stage: string) {
    this.#data = data;
    this.#held = held;
    this.#lock = lock;
    this.stage = stage;
  }

  /**
   * Throws BACKUP_REFUSED where the folder holds state and `replace` is false, and STATE_UNUSABLE where a gateway runs on
   * it.
   */
  static async open(data: string, replace: boolean): Promise<RestoreTarget> {
    const held = await partsIn(data);
    if (held.length > 0 && !replace) {
      throw refuse(`\`${data}\` is not empty; choose another folder, or replace its state with --replace`);
    }
    const lock = held.includes("state") ? await lockState(data) : undefined;
    try {
      for (const name of await readdir(data)) {
        if (name.startsWith(prefix)) await rm(join(data, name), { recursive: true });
      }
      return new RestoreTarget(data, held, lock, await mkdtemp(join(data, prefix)));
    } catch (error) {
      await lock?.[Symbol.asyncDispose]();
      throw error;
    }
  }

  /** The marks of the state to replace; undefined where they cannot be read. */
  async formerMarks(): Promise<ReadonlyMap<string, Mark> | undefined> {
    try {
      return await readMarks(join(this.#data, "high-water"), join(this.stage, "former-high-water"));
    } catch (error) {
      if (error instanceof GatewayError) return undefined;
      throw error;
    }
  }

  /**
   * Moves old state aside and the new content to its place. Durable when it resolves. Returns the folder of the old state.
   * Throws BACKUP_REFUSED where a gateway began to store in the folder meanwhile.
   */
  async commit(): Promise<string | undefined> {
    if ((await partsIn(this.#data)).some((part) => !this.#held.includes(part))) {
      throw refuse(`a gateway was started on \`${this.#data}\` meanwhile; stop it, and restore again`);
    }
    const replaced = this.#held.length === 0 ? undefined : await this.#moveAside();
    for (const part of parts) {
      // COMMIT POINT: after the second, the folder holds the restored state.
      await rename(join(this.stage, part), join(this.#data, part));
      await syncFolder(this.#data);
    }
    await this.abandon();
    return replaced;
  }

  /** Removes the staged content, and lets others open the state. */
  async abandon(): Promise<void> {
    await rm(this.stage, { recursive: true, force: true });
    await this.#lock?.[Symbol.asyncDispose]();
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

/** Holds the state of the folder. Throws STATE_UNUSABLE where a gateway does; other faults are a reason to replace it. */
async function lockState(data: string): Promise<AsyncDisposable | undefined> {
  try {
    return await takeLock(join(data, "state"));
  } catch (error) {
    throw lockedFault(data, error);
  }
}

async function partsIn(data: string): Promise<readonly string[]> {
  const there = await Promise.all(parts.map((part) => isThere(join(data, part))));
  return parts.filter((_, at) => there[at]);
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

/** The content of a backup as a data folder without keys. */
interface StagedBackup extends EvidenceFolder {
  readonly store: Store;
}

/**
 * Writes a sound backup into an empty folder: its store to `state`, its marks to `high-water`. Durable when it resolves.
 * Throws BACKUP_REFUSED where the file changed since `sound` was read.
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
  // Reopened: the database turns its log into tables, and refuses a store of another format.
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

/** Verifies the chains of a staged backup, and compares them with the notes of witnesses. */
export function judgeStaged(staged: StagedBackup, witness: readonly string[]): Promise<FolderReport> {
  const witnesses = witness.map(openWitness);
  return judgeFolder(staged, { keys: [], rules: evidenceRules, witnesses, nowMs: Date.now(), maxAgeMs: undefined });
}
