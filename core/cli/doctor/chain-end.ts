import { randomBytes } from "node:crypto";
import { constants } from "node:fs";
import { copyFile, mkdir, mkdtemp, readdir, rm, stat } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { loadChain } from "../../evidence/chain-load.ts";
import { listTenants } from "../../evidence/key-space.ts";
import { openKeyStores } from "../../evidence/key-store.ts";
import { openStore } from "../../store/open.ts";
import { readMarks } from "../evidence-folder.ts";
import { count, type Finding, fail, ok } from "./finding.ts";

/** What is copied to be read. */
const mostBytes = 268_435_456;

/**
 * How each chain of a data folder ends, as a start would find it: by its mark, its last record and its checkpoint. It reads
 * a copy, so nothing in the folder changes. Undefined where that would be too large. Nobody may hold the folder.
 */
export async function examineChainEnds(dataDir: string): Promise<readonly Finding[] | undefined> {
  const state = join(dataDir, "state");
  const names = await readdir(state);
  const sizes = await Promise.all(names.map(async (name) => (await stat(join(state, name))).size));
  if (sizes.reduce((sum, size) => sum + size, 0) > mostBytes) return undefined;
  const copy = await mkdtemp(join(tmpdir(), "gateway-doctor-"));
  try {
    await mkdir(join(copy, "state"), { mode: 0o700 });
    for (const name of names) await copyFile(join(state, name), join(copy, "state", name), constants.COPYFILE_FICLONE);
    return await judgeCopy(dataDir, copy);
  } finally {
    await rm(copy, { recursive: true, force: true });
  }
}

async function judgeCopy(dataDir: string, copy: string): Promise<readonly Finding[]> {
  const marks = await readMarks(join(dataDir, "high-water"), join(copy, "high-water"));
  const store = await openStore({ dir: copy, enabled: true });
  try {
    const source = { store, ...openKeyStores(join(dataDir, "keys"), randomBytes) };
    const faults: Finding[] = [];
    const tenants = new Set([...marks.keys(), ...(await listTenants(store))]);
    for (const tenant of tenants) {
      const mark = marks.get(tenant);
      // A chain that holds nothing yet has no end to check, and would get its keys by being loaded.
      const end = mark?.seq === -1 ? undefined : await loadChain(source, tenant, mark);
      if (end !== undefined && "refused" in end)
        faults.push(
          fail(end.refused, "restore the newest backup: `gateway restore`; `gateway evidence verify --data` says more"),
        );
    }
    return faults.length > 0 ? faults : [ok(`${count(tenants.size, "chain")} of evidence, each ending as it should`)];
  } finally {
    await store.close();
  }
}
