import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { partRange, tenantRange } from "../../core/evidence/record/key-space.ts";
import { openStore } from "../../core/store/open.ts";

const pageSize = 4096;

/** Takes out of a data folder, with nothing running on it, everything that names a tenant: its keys and its mark. */
export async function removeTenant(dir: string, tenant: string): Promise<void> {
  const store = await openStore({ dir, enabled: true });
  for (const range of [
    tenantRange(tenant),
    ...(["disclosure", "record"] as const).map((part) => partRange(tenant, part)),
  ]) {
    await store.clear({ ...range });
  }
  await store.close();
  const path = join(dir, "high-water");
  const pages = await readFile(path);
  for (let at = 0; at < pages.length; at += pageSize) {
    if (pages.subarray(at, at + pageSize).includes(`"${tenant}"`)) pages.fill(0, at, at + pageSize);
  }
  await writeFile(path, pages);
}
