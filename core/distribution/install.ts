import { lstat, mkdir, mkdtemp, rename, rm } from "node:fs/promises";
import { basename, dirname, join, resolve } from "node:path";
import { GatewayError } from "../action/error.ts";
import { type ExtensionFolder, readExtensionFolder } from "../trust/folder.ts";
import { type ExtensionLock, encodeLock, lockPath } from "./lock-file.ts";
import { writeSynced } from "./synced-file.ts";

/**
 * Throws EXTENSION_INVALID where a folder may not be replaced: it is none, or there is one that no pull has written.
 */
export async function requireReplaceable(folder: string, lock: ExtensionLock | undefined): Promise<void> {
  const found = await lstat(folder).catch((cause: NodeJS.ErrnoException) => {
    if (cause.code === "ENOENT") return undefined;
    throw unwritable(folder, cause);
  });
  if (found === undefined) return;
  if (!found.isDirectory()) throw new GatewayError("EXTENSION_INVALID", `\`${folder}\`: expected a folder, or nothing`);
  if (lock === undefined) {
    const expected = "expected a folder that a pull has written, with its lock file, or nothing";
    throw new GatewayError("EXTENSION_INVALID", `\`${folder}\`: ${expected}`);
  }
}

/**
 * Writes the files of an extension into a new folder beside the old one, synced and read again, then the lock file, then
 * moves the new folder to its place. Throws EXTENSION_INVALID; before the lock file is written, nothing has changed then.
 * A process that ends afterwards leaves a lock that the same pull completes. The old folder is gone at the end; `all` has
 * the names of the files, checked, with their bytes.
 */
export async function installExtension(
  folder: string,
  extension: Pick<ExtensionFolder, "kind" | "digest">,
  all: ReadonlyMap<string, Buffer>,
  lock: ExtensionLock,
): Promise<void> {
  const place = resolve(folder);
  const parent = dirname(place);
  let stage: string | undefined;
  try {
    await mkdir(parent, { recursive: true });
    stage = await mkdtemp(join(parent, `.${basename(place)}-pull-`));
    const fresh = join(stage, "new");
    for (const [name, bytes] of all) {
      await mkdir(dirname(join(fresh, name)), { recursive: true });
      await writeSynced(join(fresh, name), bytes);
    }
    const { digest } = await readExtensionFolder(fresh, extension.kind);
    if (digest !== extension.digest)
      throw new GatewayError("EXTENSION_INVALID", `\`${folder}\`: expected the files as written, ${extension.digest}`);
    await writeSynced(join(stage, "lock"), Buffer.from(encodeLock(lock)));
    // COMMIT POINT: from here on another release needs the user's word.
    await rename(join(stage, "lock"), lockPath(place));
    await moveInto(fresh, place, join(stage, "old"));
  } catch (cause) {
    throw cause instanceof GatewayError ? cause : unwritable(folder, cause as NodeJS.ErrnoException);
  } finally {
    if (stage !== undefined) await rm(stage, { recursive: true, force: true });
  }
}

/** Puts the old folder back where the new one cannot be moved to its place. */
async function moveInto(fresh: string, place: string, old: string): Promise<void> {
  const hadOld = await rename(place, old).then(
    () => true,
    (cause: NodeJS.ErrnoException) => {
      if (cause.code === "ENOENT") return false;
      throw cause;
    },
  );
  try {
    await rename(fresh, place);
  } catch (cause) {
    if (hadOld) await rename(old, place);
    throw cause;
  }
}

function unwritable(folder: string, cause: NodeJS.ErrnoException): GatewayError {
  return new GatewayError("EXTENSION_INVALID", `\`${folder}\` cannot be written: ${cause.code ?? String(cause)}`, {
    cause,
  });
}
