import { randomBytes } from "node:crypto";
import { chmod, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import type { GatewayConfig } from "../config/gateway-config.ts";
import { localConfig } from "../config/local.ts";
import { generateKey } from "../identity/generate-key.ts";
import { contentDigest } from "../kernel/digest.ts";
import { GatewayError } from "../kernel/error.ts";
import { makeFolder } from "../store/folder.ts";
import { stateFault } from "../store/open.ts";
import { demoUpstream } from "../upstream/demo/upstream.ts";

/** The shipped packs, beside `package.json`; compiled code lives two folders below it. */
const shippedPacks = fileURLToPath(new URL("../../../policy-packs/", import.meta.url));

/** An empty or cut file must not become the hash of a key that is easy to guess. */
const generatedKey = /^agw_[A-Za-z0-9_-]{43}$/;

/** A configuration made without a file, and where its one key is kept. */
export interface LocalMode {
  readonly config: GatewayConfig;
  readonly keyPath: string;
  /** The key, when this start made it; null when an earlier one did. */
  readonly newKey: string | null;
}

/**
 * Local mode: an embedded store in `dataDir`, the baseline pack, the demo upstream, and one operator key.
 * Throws STATE_UNUSABLE with the next step where the folder or the key cannot be used.
 */
export async function openLocalMode(dataDir: string, firstPort?: number): Promise<LocalMode> {
  const keyPath = join(dataDir, "operator.key");
  const { key, isNew } = await readOrMakeKey(dataDir, keyPath);
  const config = localConfig({
    dataDir,
    packs: [{ path: join(shippedPacks, "baseline"), mode: "enforce", settings: {} }],
    upstreams: [demoUpstream()],
    keys: [{ id: "operator", tenant: "local", role: "operator", keyHash: contentDigest(key) }],
    ...(firstPort === undefined ? {} : { firstPort }),
  });
  return { config, keyPath, newKey: isNew ? key : null };
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
