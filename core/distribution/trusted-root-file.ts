import { chmod, mkdtemp, readFile, rename, rm } from "node:fs/promises";
import { basename, dirname, join, resolve } from "node:path";
import { GatewayError } from "../action/error.ts";
import { writeSynced } from "./synced-file.ts";
import { readTrustedRootFile, type TrustedRootFile } from "./trusted-root-entry.ts";
import type { FetchedRoot } from "./trusted-root-fetch.ts";
import { encodeTufState, tufStatePath } from "./tuf-state.ts";

/**
 * Reads the file that an update would replace; undefined where there is none. Throws TRUSTED_ROOT_REFUSED where it is no
 * trusted root: it is not replaced then.
 */
export async function readPinnedRoot(file: string): Promise<TrustedRootFile | undefined> {
  let bytes: Buffer;
  try {
    bytes = await readFile(file);
  } catch (cause) {
    if ((cause as NodeJS.ErrnoException).code === "ENOENT") return undefined;
    throw unwritable(file, cause as NodeJS.ErrnoException);
  }
  const read = readTrustedRootFile(bytes);
  if (!("expected" in read)) return read;
  throw new GatewayError("TRUSTED_ROOT_REFUSED", `\`${file}\`: expected a Sigstore TrustedRoot to replace, or nothing`);
}

/**
 * Replaces a pinned trusted root, mode 0644, and the state beside it, each in one step and durable. Throws
 * TRUSTED_ROOT_REFUSED.
 */
export async function pinRoot(file: string, { root: { bytes }, state }: FetchedRoot): Promise<void> {
  const place = resolve(file);
  let stage: string | undefined;
  try {
    stage = await mkdtemp(join(dirname(place), `.${basename(place)}-update-`));
    const [root, metadata] = [join(stage, "root"), join(stage, "state")];
    await writeSynced(root, bytes);
    await writeSynced(metadata, encodeTufState(state));
    // Whatever the umask: the gateway may run as another user.
    await Promise.all([root, metadata].map((path) => chmod(path, 0o644)));
    // The state first: a process that ends in between has seen more than it pinned, and the next update pins that.
    await rename(metadata, tufStatePath(place));
    await rename(root, place);
  } catch (cause) {
    throw unwritable(file, cause as NodeJS.ErrnoException);
  } finally {
    if (stage !== undefined) await rm(stage, { recursive: true, force: true });
  }
}

function unwritable(file: string, cause: NodeJS.ErrnoException): GatewayError {
  const reason = cause.code ?? String(cause);
  return new GatewayError("TRUSTED_ROOT_REFUSED", `\`${file}\` cannot be written: ${reason}`, { cause });
}
