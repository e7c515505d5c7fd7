import { randomBytes } from "node:crypto";
import { chmod, mkdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import type { GatewayConfig } from "../config/gateway-config.ts";
import { localConfig } from "../config/local.ts";
import { generateKey } from "../identity/generate-key.ts";
import { contentDigest } from "../kernel/digest.ts";
import { demoUpstream } from "../upstream/demo/upstream.ts";

/** The shipped packs, beside `package.json`; compiled code lives two folders below it. */
const shippedPacks = fileURLToPath(new URL("../../../policy-packs/", import.meta.url));

/** A configuration made without a file, and where its one key is kept. */
export interface LocalMode {
  readonly config: GatewayConfig;
  readonly keyPath: string;
  /** The key, when this start made it; null when an earlier one did. */
  readonly newKey: string | null;
}

/** Local mode: an embedded store in `dataDir`, the baseline pack, the demo upstream, and one operator key. */
export async function openLocalMode(dataDir: string): Promise<LocalMode> {
  await mkdir(dataDir, { recursive: true, mode: 0o700 });
  const keyPath = join(dataDir, "operator.key");
  const { key, isNew } = await readOrMakeKey(keyPath);
  const config = localConfig({
    dataDir,
    packs: [{ path: join(shippedPacks, "baseline"), mode: "enforce", settings: {} }],
    upstreams: [demoUpstream()],
    keys: [{ id: "operator", tenant: "local", role: "operator", keyHash: contentDigest(key) }],
  });
  return { config, keyPath, newKey: isNew ? key : null };
}

async function readOrMakeKey(path: string): Promise<{ key: string; isNew: boolean }> {
  try {
    return { key: (await readFile(path, "utf8")).trim(), isNew: false };
  } catch (cause) {
    if ((cause as NodeJS.ErrnoException).code !== "ENOENT") throw cause;
  }
  const { key } = generateKey(randomBytes);
  await writeFile(path, `${key}\n`, { mode: 0o600, flag: "wx" });
  await chmod(path, 0o600);
  return { key, isNew: true };
}
