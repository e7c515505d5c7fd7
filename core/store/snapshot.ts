import { link, mkdtemp, readdir, rm } from "node:fs/promises";
import { join } from "node:path";
import { GatewayError } from "../action/error.ts";
import { everything } from "./damage.ts";
import { copyStoreFiles } from "./folder.ts";
import { checkFiles, findHolder, isLocked, openStore, type Store, snapshotPrefix, stateFault } from "./open.ts";

/** A store as it was at one moment. Changes to it do not affect the folder it was taken from. */
interface StoreSnapshot {
  readonly store: Store;
  /** A folder for other files of the snapshot; gone when it is closed. */
  readonly folder: string;
  close(): Promise<void>;
}

/**
 * Opens a data folder for reading without copying it: by hard links in a folder of its own inside. The database never
 * changes a file it has linked, and holds the same lock, so no gateway can run on the folder meanwhile. Every block of every
 * file is checked first.
 * Throws STATE_UNUSABLE where a gateway does, where there is no store, where its files are damaged, and where the folder takes
 * no new entry.
 */
export async function openSnapshot(dir: string): Promise<StoreSnapshot> {
  await checkState(dir);
  const folder = await linkStore(dir);
  try {
    const store = await openStore({ dir: folder, enabled: true });
    return { store, folder, close: () => store.close().finally(() => remove(folder)) };
  } catch (error) {
    await remove(folder);
    throw isLocked(error) ? lockedFault(dir, error) : error;
  }
}

/** Throws STATE_UNUSABLE for damage anywhere in the store of a data folder, and where a gateway runs on it. */
async function checkState(dir: string): Promise<void> {
  const state = join(dir, "state");
  const held = await findHolder(state);
  if (held !== undefined) throw lockedFault(dir, held);
  try {
    await checkFiles(state, everything);
  } catch (error) {
    throw isLocked(error) ? lockedFault(dir, error) : stateFault(state, error);
  }
}

/**
 * Removes the leftovers of snapshots whose process was killed: their links would keep files alive that the store has
 * rewritten. Call it only with the store open: then no snapshot is in use.
 */
export async function removeSnapshots(dir: string): Promise<void> {
  const names = (await readdir(dir)).filter((name) => name.startsWith(snapshotPrefix));
  await Promise.all(names.map((name) => remove(join(dir, name))));
}

async function linkStore(dir: string): Promise<string> {
  const state = join(dir, "state");
  let folder: string | undefined;
  try {
    folder = await mkdtemp(join(dir, snapshotPrefix));
    await copyStoreFiles(state, join(folder, "state"), link);
    return folder;
  } catch (error) {
    if (folder !== undefined) await remove(folder);
    throw stateFault(state, error);
  }
}

function remove(folder: string): Promise<void> {
  return rm(folder, { recursive: true, force: true });
}

/** STATE_UNUSABLE for a folder that another process holds, with the next step. */
export function lockedFault(dir: string, cause: unknown): GatewayError {
  return new GatewayError(
    "STATE_UNUSABLE",
    `a gateway runs on \`${dir}\`; stop it, or ask it: its admin port verifies too`,
    {
      cause,
    },
  );
}
