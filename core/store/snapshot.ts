import { link, mkdir, mkdtemp, readdir, rm } from "node:fs/promises";
import { join } from "node:path";
import { GatewayError } from "../action/error.ts";
import { openStore, type Store, stateFault } from "./open.ts";

const prefix = ".snapshot-";

/** A store as it was at one moment. Changes to it do not affect the folder it was taken from. */
interface StoreSnapshot {
  readonly store: Store;
  /** A folder for other files of the snapshot; gone when it is closed. */
  readonly folder: string;
  close(): Promise<void>;
}

/**
 * Opens a data folder for reading without copying it: by hard links in a folder of its own inside. The database never
 * changes a file it has linked, and holds the same lock, so no gateway can run on the folder meanwhile.
 * Throws STATE_UNUSABLE where a gateway does, where there is no store, and where the folder takes no new entry.
 */
export async function openSnapshot(dir: string): Promise<StoreSnapshot> {
  const folder = await linkStore(dir);
  try {
    const store = await openStore({ dir: folder, enabled: true });
    return { store, folder, close: () => store.close().finally(() => remove(folder)) };
  } catch (error) {
    await remove(folder);
    throw isLocked(error) ? lockedFault(dir, error) : error;
  }
}

/**
 * Removes the leftovers of snapshots whose process was killed: their links would keep files alive that the store has
 * rewritten. Call it only with the store open: then no snapshot is in use.
 */
export async function removeSnapshots(dir: string): Promise<void> {
  const names = (await readdir(dir)).filter((name) => name.startsWith(prefix));
  await Promise.all(names.map((name) => remove(join(dir, name))));
}

async function linkStore(dir: string): Promise<string> {
  const state = join(dir, "state");
  let folder: string | undefined;
  try {
    const names = await readdir(state);
    folder = await mkdtemp(join(dir, prefix));
    await mkdir(join(folder, "state"), { mode: 0o700 });
    for (const name of names) await link(join(state, name), join(folder, "state", name));
    return folder;
  } catch (error) {
    if (folder !== undefined) await remove(folder);
    throw stateFault(state, error);
  }
}

function remove(folder: string): Promise<void> {
  return rm(folder, { recursive: true, force: true });
}

/** Returns whether an error was caused by another process that holds the store. */
export function isLocked(error: unknown): boolean {
  for (let cause = error; cause instanceof Error; cause = cause.cause) {
    if ("code" in cause && cause.code === "LEVEL_LOCKED") return true;
  }
  return false;
}

function lockedFault(dir: string, cause: unknown): GatewayError {
  return new GatewayError(
    "STATE_UNUSABLE",
    `a gateway runs on \`${dir}\`; stop it, or ask it: its admin port verifies too`,
    {
      cause,
    },
  );
}
