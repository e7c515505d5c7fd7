import { randomBytes } from "node:crypto";
import { cp, lstat, mkdir, mkdtemp, rename, rm, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { GatewayError } from "../action/error.ts";
import type { JsonObject } from "../action/json.ts";
import type { Mode } from "../action/policy.ts";
import { loadConfig } from "../config/load.ts";
import { annotateTrust } from "../config/local.ts";
import { generateKey } from "../identity/key-ring.ts";
import { makeFolder } from "../store/folder.ts";
import { stateFault } from "../store/open.ts";
import { readExtensionFolder, signatureFiles } from "../trust/folder.ts";
import { type ExtensionSigner, generateSigner, readSigner } from "../trust/signing.ts";
import { statementBytes } from "../trust/statement.ts";
import { acceptUnverified, type ExtensionKind } from "../trust/verified-extension.ts";
import { newStatement, readContent } from "./extension-sign.ts";
import { replaceFile } from "./replace-file.ts";
import { installation } from "./scaffold.ts";
import { starterPacks, starterPlugins } from "./starter.ts";

/** The keys of a new installation: one for reviewers, and one for agents, which cannot review. */
const starterKeys = [
  { id: "admin", role: "admin" },
  { id: "agent", role: "viewer" },
] as const;

interface InstallationPlan {
  /** Keys are written to files; otherwise they are only returned. */
  readonly writesKeys: boolean;
  /** Returns the text of `gateway.yaml` for the hashes of the keys, by their ids. */
  readonly config: (keyHashes: Readonly<Record<string, string>>) => string;
  /** Further files at the top of the folder, mode 0600. */
  readonly files?: Readonly<Record<string, string | Uint8Array>>;
  /** Packs beside the shipped ones, each by its name: the texts of its files. */
  readonly ownPacks?: Readonly<Record<string, Readonly<Record<string, string>>>>;
  /** The variables that the configuration names. */
  readonly env: NodeJS.ProcessEnv;
}

interface MadeKey {
  readonly id: string;
  readonly role: string;
  /** The key itself, a secret. */
  readonly key: string;
  /** Its file; null where it is stored nowhere. */
  readonly file: string | null;
}

export interface NewInstallation {
  /** The created files and folders, sorted. */
  readonly files: readonly string[];
  readonly keys: readonly MadeKey[];
}

/**
 * Creates an installation in a folder: all of it in a stage, loaded once as a gateway would, then moved to its place. Throws
 * STATE_UNUSABLE where a file of it exists already or cannot be written; then nothing is created.
 */
export async function buildInstallation(folder: string, plan: InstallationPlan): Promise<NewInstallation> {
  const signer = generateSigner();
  const keys = starterKeys.map(({ id, role }) => {
    return { id, role, ...generateKey(randomBytes), file: plan.writesKeys ? `${id}.key` : null };
  });
  const texts = {
    "gateway.yaml": plan.config(Object.fromEntries(keys.map(({ id, keyHash }) => [id, keyHash]))),
    "trust.yaml": starterTrust(signer.public.spki),
    "signing-key.pem": signer.pem,
    ...Object.fromEntries(keys.flatMap(({ file, key }) => (file === null ? [] : [[file, `${key}\n`]]))),
    ...plan.files,
  };
  const files = [...Object.keys(texts), "data", "plugins", "policy-packs"].toSorted();
  await withStage(folder, files, async (stage) => {
    for (const [name, text] of Object.entries(texts)) {
      await writeFile(join(stage, name), text, { mode: 0o600, flag: "wx" });
    }
    await mkdir(join(stage, "data"), { mode: 0o700 });
    const by = readSigner(signer.pem);
    for (const name of starterPacks) await copyExtension("pack", join("policy-packs", name), stage, by);
    for (const { name } of starterPlugins) await copyExtension("plugin", join("plugins", name), stage, by);
    for (const [name, pack] of Object.entries(plan.ownPacks ?? {}))
      await writePack(join(stage, "policy-packs", name), pack, by);
    await loadConfig(join(stage, "gateway.yaml"), plan.env);
  });
  return { files, keys: keys.map(({ id, role, key, file }) => ({ id, role, key, file })) };
}

/** Removes what `buildInstallation` created in a folder. */
export async function removeInstallation(folder: string, { files }: NewInstallation): Promise<void> {
  for (const name of files) await rm(join(folder, name), { recursive: true, force: true });
}

/** Creates `names` with `fill` in a temporary folder and moves them into `folder`. */
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
      throw new GatewayError("STATE_UNUSABLE", `\`${path}\` exists already; move it away, or choose another folder`);
  }
}

/** Copies a shipped pack or plugin into a new installation and signs the copy. */
async function copyExtension(kind: ExtensionKind, path: string, stage: string, signer: ExtensionSigner): Promise<void> {
  const folder = join(stage, path);
  await cp(join(installation, path), folder, { recursive: true, errorOnExist: true, force: false });
  await signCopy(kind, folder, signer);
}

/** Writes a pack that is not shipped, and signs it. */
async function writePack(
  folder: string,
  files: Readonly<Record<string, string>>,
  signer: ExtensionSigner,
): Promise<void> {
  for (const [name, text] of Object.entries(files)) {
    await mkdir(dirname(join(folder, name)), { recursive: true });
    await writeFile(join(folder, name), text, { flag: "wx" });
  }
  await signCopy("pack", folder, signer);
}

async function signCopy(kind: ExtensionKind, folder: string, signer: ExtensionSigner): Promise<void> {
  const read = await readExtensionFolder(folder, kind);
  const content = await readContent(kind, folder, acceptUnverified(read, null));
  const statement = newStatement(read, content, new Date().toISOString(), undefined);
  await replaceFile(join(folder, signatureFiles[kind]), signer.sign(statementBytes(statement)));
}

interface InstallationForm {
  readonly tenant: string;
  readonly firstPort: number;
  /** By the id of the key. */
  readonly keyHashes: Readonly<Record<string, string>>;
  readonly upstreams: readonly JsonObject[];
  /** The packs, by their names. */
  readonly packs: readonly { readonly name: string; readonly mode: Mode }[];
  /** The folder for the notes of the witness; one beside the data folder where absent. */
  readonly witness?: string;
}

/** Returns the values of `gateway.yaml`: strict, on loopback, with the files that `buildInstallation` makes. */
export function installationForm(form: InstallationForm): JsonObject {
  const { tenant, firstPort, keyHashes, upstreams, packs, witness = "witness" } = form;
  const step = firstPort === 0 ? 0 : 1;
  return {
    listen: {
      host: "127.0.0.1",
      gateway_port: firstPort,
      admin_port: firstPort + step,
      metrics_port: firstPort + 2 * step,
    },
    data_dir: "data",
    state: { enabled: true, mark: "gateway.mark" },
    keys: starterKeys.map(({ id, role }) => ({ id, tenant, role, key_hash: keyHashes[id] ?? null })),
    mcp_gateway: { require_auth: true },
    upstreams,
    model_gateway: { tool_passthrough: "client" },
    policy: {
      packs: packs.map(({ name, mode }) => ({ path: `policy-packs/${name}`, mode })),
      plugins: starterPlugins.map(({ name, mode, phases }) => ({ path: `plugins/${name}`, mode, phases: [...phases] })),
      default_decision: "block",
    },
    extensions: { strict: true, trust_policy: "trust.yaml" },
    evidence: { witnesses: [{ name: "notes", type: "file", path: witness }] },
    resilience: { enabled: true, backup_dir: "backups" },
    log: { level: "info" },
  };
}

const trustIntro =
  "The trusted signers. Write access to this file decides which policies the gateway runs. After a change of a pack: " +
  "`gateway pack sign <folder> --key signing-key.pem`.";

/** The text of `trust.yaml`: one signer, by its public key. */
function starterTrust(publicKey: string): string {
  return annotateTrust({ any_of: { minimum: 1, signers: [{ name: "operator", key: publicKey }] } }, trustIntro);
}
