import { randomBytes } from "node:crypto";
import { chmod, readFile, writeFile } from "node:fs/promises";
import { dirname, join, resolve } from "node:path";
import { contentDigest } from "../action/canonical-json.ts";
import { GatewayError } from "../action/error.ts";
import type { Role } from "../action/role.ts";
import type { GatewayConfig, KeyConfig } from "../config/gateway-config.ts";
import { localConfig } from "../config/local.ts";
import { generateKey } from "../identity/key-ring.ts";
import { isWritable, makeFolder } from "../store/folder.ts";
import { stateFault } from "../store/open.ts";
import { demoUpstream } from "../upstream/demo/upstream.ts";
import { installation } from "./scaffold.ts";
import { localPacks, starterPlugins } from "./starter.ts";

/** An empty or cut file must not become the hash of a key that is easy to guess. */
const generatedKey = /^agw_[A-Za-z0-9_-]{43}$/;

/** Agents get a key that cannot review what they ask for. */
const localRoles = { agent: "viewer", operator: "operator" } as const;

/** A key of local mode and its file. */
interface LocalKey {
  readonly id: keyof typeof localRoles;
  readonly role: Role;
  readonly path: string;
  /** The key where this start generated it; null where an earlier one did. */
  readonly made: string | null;
}

/** A configuration without a file, and its keys. */
interface LocalMode {
  readonly config: GatewayConfig;
  readonly keys: readonly LocalKey[];
}

/**
 * Opens local mode: an embedded store in `dataDir`, the shipped packs, the demo upstream, a key for agents and one for
 * reviewers. Throws STATE_UNUSABLE with the next step where the folder or a key cannot be used.
 */
export async function openLocalMode(dataDir: string, firstPort?: number): Promise<LocalMode> {
  const keys: LocalKey[] = [];
  const configured: KeyConfig[] = [];
  for (const id of ["agent", "operator"] as const) {
    const path = join(dataDir, `${id}.key`);
    const { key, isNew } = await readOrCreateKey(dataDir, path);
    const role = localRoles[id];
    keys.push({ id, role, path, made: isNew ? key : null });
    configured.push({ id, tenant: "local", role, keyHash: contentDigest(key) });
  }
  return { config: await configOf(dataDir, configured, firstPort), keys };
}

/** Returns the configuration of local mode with the existing keys. Creates nothing. Throws as `openLocalMode` does. */
export async function viewLocalMode(dataDir: string, firstPort?: number): Promise<GatewayConfig> {
  const configured: KeyConfig[] = [];
  for (const id of ["agent", "operator"] as const) {
    const key = await readKey(join(dataDir, `${id}.key`)).catch((cause) => {
      throw cause instanceof GatewayError ? cause : stateFault(dataDir, cause);
    });
    if (key !== null) configured.push({ id, tenant: "local", role: localRoles[id], keyHash: contentDigest(key) });
  }
  return configOf(dataDir, configured, firstPort);
}

/** Returns the operator's key of local mode; null where there is none yet. Throws as `openLocalMode` does. */
export function readOperatorKey(dataDir: string): Promise<string | null> {
  return readKey(join(dataDir, "operator.key")).catch((cause) => {
    throw cause instanceof GatewayError ? cause : stateFault(dataDir, cause);
  });
}

/** The mark is beside the data folder; there is none where that place cannot be written to, as in a volume. */
async function markBeside(dataDir: string): Promise<string | null> {
  const folder = resolve(dataDir);
  return (await isWritable(dirname(folder))) ? `${folder}.mark` : null;
}

async function configOf(
  dataDir: string,
  keys: readonly KeyConfig[],
  firstPort: number | undefined,
): Promise<GatewayConfig> {
  return localConfig({
    dataDir,
    mark: await markBeside(dataDir),
    packs: localPacks.map((name) => {
      return { path: join(installation, "policy-packs", name), mode: "enforce", settings: {}, shadowRules: [] };
    }),
    plugins: starterPlugins.map(({ name, mode, phases }) => {
      return { path: join(installation, "plugins", name), mode, phases, taints: [], settings: {} };
    }),
    upstreams: [demoUpstream()],
    keys,
    ...(firstPort === undefined ? {} : { firstPort }),
  });
}

async function readOrCreateKey(dataDir: string, path: string): Promise<{ key: string; isNew: boolean }> {
  try {
    await makeFolder(dataDir);
    const kept = await readKey(path);
    return kept === null ? { key: await createKey(path), isNew: true } : { key: kept, isNew: false };
  } catch (cause) {
    throw cause instanceof GatewayError ? cause : stateFault(dataDir, cause);
  }
}

/** Returns the key of an earlier start, or null. */
async function readKey(path: string): Promise<string | null> {
  let text: string;
  try {
    text = await readFile(path, "utf8");
  } catch (cause) {
    if ((cause as NodeJS.ErrnoException).code === "ENOENT") return null;
    throw cause;
  }
  const key = text.trim();
  if (generatedKey.test(key)) return key;
  throw new GatewayError(
    "STATE_UNUSABLE",
    `expected a key in \`${path}\`, got something else; remove it to get a new one`,
  );
}

async function createKey(path: string): Promise<string> {
  const { key } = generateKey(randomBytes);
  await writeFile(path, `${key}\n`, { mode: 0o600, flag: "wx" });
  await chmod(path, 0o600);
  return key;
}
