import { randomBytes } from "node:crypto";
import { join } from "node:path";
import { KeyFolder } from "../evidence/key-folder.ts";
import { Ledger } from "../evidence/ledger.ts";
import { WrappingKeyFolder } from "../evidence/wrapping-key-folder.ts";
import { contentDigest } from "../kernel/digest.ts";
import { GatewayError } from "../kernel/error.ts";
import { lockWatch } from "../store/lock.ts";
import { openStore, type Store } from "../store/open.ts";
import { removeSnapshots } from "../store/snapshot.ts";
import { openEvidenceFolder } from "./evidence-folder.ts";

/**
 * Opens the ledger of a data folder for one change of a tenant's evidence, in the name of a tool, and closes it again.
 * Throws STATE_UNUSABLE where a gateway runs on the folder, and where it holds no evidence of the tenant: a folder that
 * is none must not become one.
 */
export async function changeEvidence<T>(
  dir: string,
  tenant: string,
  tool: string,
  change: (ledger: Ledger, store: Store) => Promise<T>,
): Promise<T> {
  await checkTenantThere(dir, tenant);
  const store = await openStore({ dir, enabled: true });
  try {
    await removeSnapshots(dir);
    const ledger = await openOfflineLedger(store, { dir, keys: join(dir, "keys"), tool });
    return await change(ledger, store).finally(() => ledger.close());
  } finally {
    await store.close();
  }
}

/** The ledger of a store in `dir`, whose keys lie in the folder `keys`, in the name of a tool. */
export function openOfflineLedger(
  store: Store,
  { dir, keys, tool }: { readonly dir: string; readonly keys: string; readonly tool: string },
): Promise<Ledger> {
  return Ledger.open({
    store,
    holdsStore: lockWatch(store, dir, true),
    highWaterPath: join(dir, "high-water"),
    keys: new KeyFolder(keys, randomBytes),
    wrappingKeys: new WrappingKeyFolder(keys, randomBytes),
    fieldPolicy: { storeValues: false, storeLabels: false, redactFields: [] },
    clock: Date.now,
    random: randomBytes,
    writerId: tool,
    configDigest: contentDigest(""), // no configuration is in force
  });
}

async function checkTenantThere(dir: string, tenant: string): Promise<void> {
  const folder = await openEvidenceFolder(dir);
  await folder.close();
  if (folder.tenants.includes(tenant)) return;
  throw new GatewayError("STATE_UNUSABLE", `expected a tenant with evidence in \`${dir}\`, got \`${tenant}\``);
}
