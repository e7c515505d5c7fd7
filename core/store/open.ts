import { link, mkdtemp, realpath, rm } from "node:fs/promises";
import { dirname, join } from "node:path";
import { Level } from "level";
import { GatewayError } from "../action/error.ts";
import { type CheckExtent, corruption, findDamage, newestPart } from "./damage.ts";
import { makeFolder, syncFolder } from "./folder.ts";
import { copyPositionKey, type OnMoved, takeFormat } from "./format.ts";
import type { KeyRange, StringLevel } from "./key-range.ts";
import { whileOptimizing } from "./optimizer.ts";
import { keepFilesPrivate } from "./private-file.ts";
import { SplitLevel } from "./split-level.ts";
import { valueEncoding } from "./value-encoding.ts";

/** The embedded database every durable part shares: string keys (tenant first, but for growing families), string values. */
export type Store = StringLevel;

export interface StoreOptions {
  /** The data folder; the database lives in its subfolder `state`. */
  readonly dir: string;
  /** False keeps everything in memory, and loses it with the process. */
  readonly enabled: boolean;
  /** Makes the engine on disk; left out: LevelDB alone. */
  readonly create?: EngineMaker;
  /** Told how far a store of an earlier format is brought to this one, which takes some minutes for a million records. */
  readonly onMoved?: OnMoved;
}

/** Makes an engine for a folder, with the settings of LevelDB. */
export type EngineMaker = (folder: string, settings: object) => Store;

/**
 * The settings of the engine. The bytes in memory before they become a table, eight times the engine's own: each table
 * overlaps all that are not merged yet, so fewer and larger ones are rewritten less often; a start replays as many. Blocks
 * are compressed one by one: in larger ones, what neighbouring records repeat is kept once. `multithreading` stays off: it
 * lets a second handle share the lock, and crashes under load.
 */
const tuning = { multithreading: false, writeBufferSize: 33_554_432, blockSize: 16_384 };

/** Leftovers of snapshots and of questions for the lock; whoever holds the store may remove them. */
export const snapshotPrefix = ".snapshot-";

/**
 * Opens the store, creating its folder (mode 0700) where there is none; from then on the process creates files for its owner
 * alone. The files of the store are checked for damage first: LevelDB
 * checks no block that it reads, writes what it read into new files, and ends the process at some damage.
 * Throws STATE_UNUSABLE with the next step: held by another process, not a writable folder, damaged, or written in
 * another format.
 */
export async function openStore(options: StoreOptions): Promise<Store> {
  if (!options.enabled) {
    const { MemoryLevel } = await import("memory-level");
    const store = new MemoryLevel<string, string>({ valueEncoding });
    await store.open();
    await takeFormat(store);
    return store;
  }
  const store = await openFolder(options.dir, options.create, options.onMoved);
  try {
    if (options.create === undefined) await refuseCopy(store);
    await takeFormat(store, options.onMoved);
    return store;
  } catch (error) {
    await store.close();
    throw error instanceof GatewayError ? error : stateFault(join(options.dir, "state"), error);
  }
}

/** Throws for a copy of a database: what is written to it alone would be lost, and makes it differ. */
async function refuseCopy(store: Store): Promise<void> {
  if ((await store.get(copyPositionKey)) === undefined) return;
  const text =
    "the data folder is a replica's copy of a database: ask a running replica, or take the store out of the database with " +
    "`gateway store migrate --to leveldb`";
  throw new GatewayError("STATE_UNUSABLE", text);
}

function createLevel(folder: string, settings: object): Store {
  return new SplitLevel(folder, settings);
}

/** Opens the engine of a data folder as `openStore` does, whatever the format of the store. */
export async function openFolder(dir: string, create: EngineMaker = createLevel, onMoved?: OnMoved): Promise<Store> {
  const folder = join(dir, "state");
  keepFilesPrivate();
  try {
    await createFolder(dir, folder);
    await checkFiles(folder, newestPart);
    const store = create(folder, { valueEncoding, ...tuning, ...(onMoved && { onMoved }) });
    await store.open();
    return store;
  } catch (error) {
    throw gatewayErrorIn(error) ?? stateFault(folder, error);
  }
}

/** The GatewayError among the causes of an error: the database wraps what an engine throws. */
function gatewayErrorIn(error: unknown): GatewayError | undefined {
  for (let cause = error; cause instanceof Error; cause = cause.cause) if (cause instanceof GatewayError) return cause;
  return undefined;
}

/** The new entry is synced in its parent, or a power cut could take the whole folder with it. */
async function createFolder(dir: string, folder: string): Promise<void> {
  await makeFolder(folder);
  await syncFolder(dir);
}

/**
 * Throws the first damage in the files of a store, as the database's own errors of that kind. Where another process holds
 * the store, throws that instead: then its files may be amid a change.
 */
export async function checkFiles(folder: string, extent: CheckExtent): Promise<void> {
  const damage = await whileOptimizing(() => findDamage(folder, extent));
  if (damage === undefined) return;
  throw (await findHolder(folder)) ?? corruption(damage);
}

/**
 * Returns the error of the database where another process holds the store in `folder`. Takes its lock for a moment: a
 * process that holds the store itself would lose its lock by asking.
 */
export async function findHolder(folder: string): Promise<Error | undefined> {
  try {
    await (await takeLock(folder))?.[Symbol.asyncDispose]();
    return undefined;
  } catch (error) {
    return error as Error;
  }
}

/**
 * Takes the lock of the store in `folder` without opening the store, through a link in a folder that has no other file:
 * nothing else is read, so that damage does not matter. No other process opens the store until the lock is disposed of,
 * wherever its folder is moved meanwhile. Throws the error of the database where another process holds it. Undefined
 * where nobody can be asked: no lock file, or no room for a link, as on a read-only copy.
 */
export async function takeLock(folder: string): Promise<AsyncDisposable | undefined> {
  // Beside the folder itself, where that is a link: a link to a file does not lead to another disk.
  const home = await realpath(folder).catch(() => folder);
  const probe = await mkdtemp(join(dirname(home), snapshotPrefix)).catch(() => undefined);
  if (probe === undefined) return undefined;
  const remove = (): Promise<void> => rm(probe, { recursive: true, force: true });
  try {
    await link(join(home, "LOCK"), join(probe, "LOCK"));
    const empty = new Level<string, string>(probe);
    await empty.open();
    return { [Symbol.asyncDispose]: () => empty.close().finally(remove) };
  } catch (error) {
    await remove();
    if (isLocked(error)) throw error;
    return undefined;
  }
}

/** Returns whether an error was caused by another process that holds the store. */
export function isLocked(error: unknown): boolean {
  for (let cause = error; cause instanceof Error; cause = cause.cause) {
    if ("code" in cause && cause.code === "LEVEL_LOCKED") return true;
  }
  return false;
}

/** STATE_UNUSABLE for what went wrong at `folder`, with the next step. */
export function stateFault(folder: string, error: unknown): GatewayError {
  return new GatewayError("STATE_UNUSABLE", describeFault(folder, rootCause(error)), { cause: error });
}

/** Returns the innermost cause: the database wraps it in an error that says only that it is not open. */
function rootCause(error: unknown): { readonly code: string; readonly message: string } {
  let cause = error;
  while (cause instanceof Error && cause.cause instanceof Error) cause = cause.cause;
  const message = cause instanceof Error ? cause.message : String(cause);
  const code = cause instanceof Error && "code" in cause ? String(cause.code) : "";
  return { code, message };
}

function describeFault(folder: string, cause: { readonly code: string; readonly message: string }): string {
  const at = `\`${folder}\``;
  if (cause.code === "LEVEL_LOCKED") return `another process holds ${at}; stop it, or choose another folder`;
  if (cause.code === "LEVEL_CORRUPTION") return `${at} is damaged (${cause.message}); restore the newest backup`;
  if (cause.code === "ENOTDIR" || cause.code === "EEXIST") return `expected ${at} to be a folder, got a file`;
  if (cause.code === "EROFS" || /read-only/i.test(cause.message)) {
    return `${at} is on a read-only disk; mount it writable, or choose another folder`;
  }
  if (cause.code === "EACCES" || cause.code === "EPERM" || /permission denied/i.test(cause.message)) {
    return `this user may not write ${at}; change its owner, or choose another folder`;
  }
  return `${at} cannot be opened (${cause.message}); check the disk, or choose another folder`;
}

interface Sizer {
  approximateSize(start: string, end: string): Promise<number>;
}

/** Returns the bytes that a range takes in the store's tables, about: what lies in the log is not counted. 0 in memory. */
export async function sizeOfRange(store: Store, { gte, lt }: KeyRange): Promise<number> {
  return hasTables(store) ? store.approximateSize(gte, lt) : 0;
}

/** Only the engine on disk has the method. */
function hasTables(store: Store): store is Store & Sizer {
  return store.supports.additionalMethods.approximateSize === true;
}
