import { randomBytes } from "node:crypto";
import { lstat, mkdir, mkdtemp, rename, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { loadConfig } from "../../config/load.ts";
import { generateSigner, readSigner } from "../../extension/signing.ts";
import { generateKey } from "../../identity/generate-key.ts";
import { GatewayError } from "../../kernel/error.ts";
import { makeFolder } from "../../store/folder.ts";
import { stateFault } from "../../store/open.ts";
import { type Starter, starterConfig, starterKeys, starterPacks, starterTrust } from "./starter.ts";
import { copyPack } from "./starter-pack.ts";

export interface InstallationOptions extends Omit<Starter, "keyHashes"> {
  /** Keys go into files of their own; else they are only in what is answered. */
  readonly keepKeys: boolean;
}

export interface MadeKey {
  readonly id: string;
  readonly role: string;
  /** The key itself, a secret. */
  readonly key: string;
  /** Its file, null where it is kept nowhere. */
  readonly file: string | null;
}

export interface Installation {
  /** What was made in the folder, in the order of its names. */
  readonly files: readonly string[];
  readonly keys: readonly MadeKey[];
}

/**
 * Makes an installation in a folder: everything beside it first, loaded once as a gateway would, then moved to its place.
 * Throws STATE_UNUSABLE where anything of it is there already, or cannot be written; then nothing was made.
 */
export async function makeInstallation(folder: string, options: InstallationOptions): Promise<Installation> {
  const signer = generateSigner();
  const keys = starterKeys.map(({ id, role }) => {
    return { id, role, ...generateKey(randomBytes), file: options.keepKeys ? `${id}.key` : null };
  });
  const keyHashes = Object.fromEntries(keys.map(({ id, keyHash }) => [id, keyHash]));
  const texts = {
    "gateway.yaml": starterConfig({ ...options, keyHashes }),
    "trust.yaml": starterTrust(signer.public.spki),
    "signing-key.pem": signer.pem,
    ...Object.fromEntries(keys.flatMap(({ file, key }) => (file === null ? [] : [[file, `${key}\n`]]))),
  };
  const files = [...Object.keys(texts), "data", "policy-packs"].toSorted();
  await withStage(folder, files, async (stage) => {
    for (const [name, text] of Object.entries(texts)) {
      await writeFile(join(stage, name), text, { mode: 0o600, flag: "wx" });
    }
    await mkdir(join(stage, "data"), { mode: 0o700 });
    await mkdir(join(stage, "policy-packs"));
    for (const name of starterPacks) await copyPack(name, join(stage, "policy-packs", name), readSigner(signer.pem));
    await loadConfig(join(stage, "gateway.yaml"), process.env);
  });
  return { files, keys: keys.map(({ id, role, key, file }) => ({ id, role, key, file })) };
}

/** Has `fill` make `names` in a folder of its own, and moves them into `folder`. */
async function withStage(
  folder: string,
  names: readonly string[],
  fill: (stage: string) => Promise<void>,
): Promise<void> {
  let stage: string | undefined;
  const placed: string[] = [];
  try {
    await makeFolder(folder);
    await refusePresent(folder, names);
    stage = await mkdtemp(join(folder, ".init-"));
    await fill(stage);
    await refusePresent(folder, names);
    for (const name of names) {
      await rename(join(stage, name), join(folder, name));
      placed.push(join(folder, name));
    }
  } catch (cause) {
    for (const path of placed) await rm(path, { recursive: true, force: true });
    throw cause instanceof GatewayError ? cause : stateFault(folder, cause);
  } finally {
    if (stage !== undefined) await rm(stage, { recursive: true, force: true });
  }
}

async function refusePresent(folder: string, names: readonly string[]): Promise<void> {
  for (const name of names) {
    const path = join(folder, name);
    const isThere = await lstat(path).then(
      () => true,
      (cause: NodeJS.ErrnoException) => {
        if (cause.code === "ENOENT") return false;
        throw cause;
      },
    );
    if (isThere)
      throw new GatewayError("STATE_UNUSABLE", `\`${path}\` is there already; move it away, or choose another folder`);
  }
}
