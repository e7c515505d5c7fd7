import { randomBytes } from "node:crypto";
import { chmod, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { type Command, InvalidArgumentError, Option } from "commander";
import { contentDigest } from "../action/canonical-json.ts";
import { GatewayError } from "../action/error.ts";
import type { Role } from "../action/role.ts";
import type { GatewayConfig, KeyConfig } from "../config/gateway-config.ts";
import { localConfig } from "../config/local.ts";
import { generateKey } from "../identity/key-ring.ts";
import { makeFolder } from "../store/folder.ts";
import { stateFault } from "../store/open.ts";
import { demoUpstream } from "../upstream/demo/upstream.ts";

/** The shipped packs, beside `package.json`; compiled code lives two folders below it. */
const shippedPacks = fileURLToPath(new URL("../../../policy-packs/", import.meta.url));

/** An empty or cut file must not become the hash of a key that is easy to guess. */
const generatedKey = /^agw_[A-Za-z0-9_-]{43}$/;

/** Agents get a key that cannot review what they ask for. */
const localRoles = { agent: "viewer", operator: "operator" } as const;

/** A key of local mode, and the file that keeps it. */
interface LocalKey {
  readonly id: keyof typeof localRoles;
  readonly role: Role;
  readonly path: string;
  /** The key, when this start made it; null when an earlier one did. */
  readonly made: string | null;
}

/** A configuration made without a file, and where its keys are kept. */
interface LocalMode {
  readonly config: GatewayConfig;
  readonly keys: readonly LocalKey[];
}

/**
 * Local mode: an embedded store in `dataDir`, the shipped packs, the demo upstream, a key for agents and one for the
 * person who reviews. Throws STATE_UNUSABLE with the next step where the folder or a key cannot be used.
 */
export async function openLocalMode(dataDir: string, firstPort?: number): Promise<LocalMode> {
  const keys: LocalKey[] = [];
  const configured: KeyConfig[] = [];
  for (const id of ["agent", "operator"] as const) {
    const path = join(dataDir, `${id}.key`);
    const { key, isNew } = await readOrMakeKey(dataDir, path);
    const role = localRoles[id];
    keys.push({ id, role, path, made: isNew ? key : null });
    configured.push({ id, tenant: "local", role, keyHash: contentDigest(key) });
  }
  return { config: configOf(dataDir, configured, firstPort), keys };
}

/** What local mode would start with, its keys as far as there are any. Makes nothing. Throws as `openLocalMode` does. */
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

function configOf(dataDir: string, keys: readonly KeyConfig[], firstPort: number | undefined): GatewayConfig {
  return localConfig({
    dataDir,
    packs: ["baseline", "session-watch"].map((name) => {
      return { path: join(shippedPacks, name), mode: "enforce", settings: {}, shadowRules: [] };
    }),
    upstreams: [demoUpstream()],
    keys,
    ...(firstPort === undefined ? {} : { firstPort }),
  });
}

async function readOrMakeKey(dataDir: string, path: string): Promise<{ key: string; isNew: boolean }> {
  try {
    await makeFolder(dataDir);
    const kept = await readKey(path);
    return kept === null ? { key: await makeKey(path), isNew: true } : { key: kept, isNew: false };
  } catch (cause) {
    throw cause instanceof GatewayError ? cause : stateFault(dataDir, cause);
  }
}

/** The key of an earlier start, or null where there was none. */
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

async function makeKey(path: string): Promise<string> {
  const { key } = generateKey(randomBytes);
  await writeFile(path, `${key}\n`, { mode: 0o600, flag: "wx" });
  await chmod(path, 0o600);
  return key;
}

/** `--data` and `--port`: where local mode is. Neither stands beside `--config`. */
export function takeLocalOptions(command: Command): Command {
  return command
    .addOption(
      new Option("-d, --data <folder>", "local mode: data folder (default: data)")
        .env("GATEWAY_DATA_DIR")
        .conflicts("config"),
    )
    .addOption(
      new Option("-p, --port <number>", "local mode: first of three ports in a row (default: 8080)")
        .conflicts("config")
        .argParser(parseFirstPort),
    );
}

/** Three ports in a row. */
const highestPort = 65_533;

/** The first of three ports in a row, or 0 for any free ones. */
export function parseFirstPort(value: string): number {
  const port = /^\d{1,5}$/.test(value) ? Number(value) : Number.NaN;
  if (port <= highestPort) return port;
  throw new InvalidArgumentError(`expected 1 to ${highestPort}, or 0 for any free ports`);
}
