import { randomBytes } from "node:crypto";
import { constants } from "node:fs";
import { copyFile, mkdir, mkdtemp, readdir, rm, stat } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { GatewayError } from "../../action/error.ts";
import { VerifyingKey } from "../../action/signing-key.ts";
import { loadChain } from "../../evidence/chain/chain-load.ts";
import { openKeyStores } from "../../evidence/key/key-folder.ts";
import { listTenants } from "../../evidence/record/key-space.ts";
import { isCheckpointSignedBy, parseCheckpoint } from "../../evidence/tree/checkpoint.ts";
import type { PublishedCheckpoint } from "../../evidence/witness/witness-publisher.ts";
import { openStore } from "../../store/open.ts";
import { askAdmin } from "../admin-client.ts";
import { readMarks } from "../evidence-folder.ts";
import { count, type Examine, type Finding, fail, ok, type Patient, warn } from "./finding.ts";

/** Who uses the data folder, and whether its evidence ends as it should. A gateway that runs on it is asked. */
export const examineData: Examine = async (patient) => {
  const { dataDir, state } = patient.config;
  if (!state.enabled) return [ok("none is used")];
  const found = await stat(dataDir).catch((cause: NodeJS.ErrnoException) => cause.code);
  if (found === "ENOENT") return [ok(`\`${dataDir}\` is made at the first start`)];
  if (typeof found !== "object")
    return [fail(`\`${dataDir}\` cannot be opened: ${found}`, "give it to the user who runs the gateway")];
  if (!found.isDirectory()) {
    return [fail(`\`${dataDir}\` is no folder`, "move it away, or choose another `data_dir`")];
  }
  if (patient.holder === undefined) {
    return [ok("evidence was not read: this system does not tell whether a gateway runs on it")];
  }
  return patient.holder === null ? examineAtRest(dataDir) : examineRunning(patient, patient.holder);
};

async function examineAtRest(dataDir: string): Promise<readonly Finding[]> {
  const isNew = (await stat(`${dataDir}/state`).catch(() => undefined)) === undefined;
  if (isNew) return [ok("new: it holds no evidence yet")];
  const found = await examineChainEnds(dataDir);
  return found ?? [ok(`too much to be read here; \`gateway evidence verify --data ${dataDir}\` reads it whole`)];
}

async function examineRunning(
  { admin, env }: Patient,
  { pid, name }: NonNullable<Patient["holder"]>,
): Promise<readonly Finding[]> {
  const running = ok(`held by \`${name}\`, pid ${pid}`);
  if ((env.GATEWAY_API_KEY ?? "") === "") {
    return [running, ok("evidence was not read: set GATEWAY_API_KEY, and the gateway is asked")];
  }
  return [running, await examineHead(admin)];
}

/** What is copied to be read. */
const maxBytes = 268_435_456;

/**
 * How each chain of a data folder ends, as a start would find it: by its mark, its last record and its checkpoint. It reads
 * a copy, so nothing in the folder changes. Undefined where that would be too large. Nobody may hold the folder.
 */
async function examineChainEnds(dataDir: string): Promise<readonly Finding[] | undefined> {
  const state = join(dataDir, "state");
  const names = await readdir(state);
  const sizes = await Promise.all(names.map(async (name) => (await stat(join(state, name))).size));
  if (sizes.reduce((sum, size) => sum + size, 0) > maxBytes) return undefined;
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

/** Clocks of two machines differ a little. */
const maxAheadMs = 5_000;

/** Where a running gateway's evidence ends, by its own latest checkpoint. */
async function examineHead(admin: string): Promise<Finding> {
  try {
    const body = await askAdmin({ admin }, "/admin/v1/evidence/checkpoint");
    return judgeCheckpoint(JSON.parse(body.toString("utf8")) as PublishedCheckpoint, Date.now());
  } catch (cause) {
    const { message } = GatewayError.from(cause);
    const mend = "set `--admin` and GATEWAY_API_KEY to its own";
    return warn(`the gateway at ${admin} does not say where its evidence ends: ${message}`, mend);
  }
}

/** A checkpoint against the keys told with it, and the clock. Whose keys they are, nobody here can know. */
export function judgeCheckpoint({ note, keys }: PublishedCheckpoint, nowMs: number): Finding {
  const checkpoint = parseCheckpoint(note);
  const mend = "`gateway evidence verify` tells more; restore the newest backup";
  if (checkpoint === undefined) return fail("the gateway's latest checkpoint is none", mend);
  const { size, time } = checkpoint;
  const valid = keys.filter(({ from_size: from, to_size: to }) => from <= size && size <= (to ?? size));
  const known = valid.map(({ public_key: key }) => VerifyingKey.parse(key)).filter((key) => key !== undefined);
  if (known.length < valid.length || !isCheckpointSignedBy(checkpoint, known)) {
    return fail(`the gateway's latest checkpoint, over ${size} records, is not signed by its key`, mend);
  }
  if (Date.parse(time) - nowMs > maxAheadMs) {
    return fail(
      `the gateway's latest record is of ${time}, which is yet to come`,
      "set the clock of one of the two machines",
    );
  }
  return ok(`the gateway vouches for ${size} records of your tenant, the latest of ${time}`);
}
