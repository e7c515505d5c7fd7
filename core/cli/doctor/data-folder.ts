import { randomBytes } from "node:crypto";
import { constants } from "node:fs";
import { copyFile, mkdtemp, rm, stat } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { GatewayError } from "../../action/error.ts";
import { VerifyingKey } from "../../action/signing-key.ts";
import { loadChain } from "../../evidence/chain/chain-load.ts";
import { openKeyStores } from "../../evidence/key/key-folder.ts";
import { evidenceOperations } from "../../evidence/operation.ts";
import { isCheckpointSignedBy, parseCheckpoint } from "../../evidence/tree/checkpoint.ts";
import type { PublishedCheckpoint } from "../../evidence/witness/witness-publisher.ts";
import { copyStoreFiles, folderBytes } from "../../store/folder.ts";
import { listTenants } from "../../store/key-range.ts";
import { openStore } from "../../store/open.ts";
import { callAdmin } from "../admin-client.ts";
import { readMarks } from "../evidence-folder.ts";
import { type DoctorCheck, type DoctorFinding, type DoctorTarget, fail, ok, quantity, warn } from "./finding.ts";

/** Checks how the evidence in the data folder ends, from a copy, or through the admin port where a gateway runs on it. */
export const checkData: DoctorCheck = async (target) => {
  const { dataDir, state, store } = target.config;
  if (!state.enabled) return [ok("none: state is in memory")];
  if (store !== null) return [ok("a copy of the replicas' database")];
  const found = await stat(dataDir).catch((cause: NodeJS.ErrnoException) => cause.code);
  if (found === "ENOENT") return [ok(`\`${dataDir}\` is created at the first start`)];
  if (typeof found !== "object")
    return [fail(`\`${dataDir}\` cannot be opened: ${found}`, "make the user who runs the gateway its owner")];
  if (!found.isDirectory()) {
    return [fail(`\`${dataDir}\` is no folder`, "move it away, or set another `data_dir`")];
  }
  if (target.holder === undefined) {
    return [ok("evidence was not read: this system does not show whether a gateway runs on it")];
  }
  return target.holder === null ? checkAtRest(dataDir) : checkRunning(target, target.holder);
};

async function checkAtRest(dataDir: string): Promise<readonly DoctorFinding[]> {
  const isNew = (await stat(`${dataDir}/state`).catch(() => undefined)) === undefined;
  if (isNew) return [ok("no evidence yet")];
  const found = await checkChainEnds(dataDir);
  return found ?? [ok(`evidence was not read: too large; use \`gateway evidence verify --data ${dataDir}\``)];
}

async function checkRunning(
  { admin, env }: DoctorTarget,
  { pid, name }: NonNullable<DoctorTarget["holder"]>,
): Promise<readonly DoctorFinding[]> {
  const running = ok(`held by \`${name}\`, pid ${pid}`);
  if ((env.GATEWAY_API_KEY ?? "") === "") {
    return [running, ok("evidence was not read: set GATEWAY_API_KEY to check it through the gateway")];
  }
  return [running, await checkHead(admin)];
}

const maxCopyBytes = 268_435_456;

/**
 * Checks how each chain of a data folder ends, as a start does: its mark, last record and checkpoint. Reads a copy, so
 * nothing in the folder changes; undefined where that would be too large. No process may hold the folder.
 */
async function checkChainEnds(dataDir: string): Promise<readonly DoctorFinding[] | undefined> {
  const state = join(dataDir, "state");
  if ((await folderBytes(state)) > maxCopyBytes) return undefined;
  const copy = await mkdtemp(join(tmpdir(), "gateway-doctor-"));
  try {
    await copyStoreFiles(state, join(copy, "state"), (from, to) => copyFile(from, to, constants.COPYFILE_FICLONE));
    return await judgeCopy(dataDir, copy);
  } finally {
    await rm(copy, { recursive: true, force: true });
  }
}

async function judgeCopy(dataDir: string, copy: string): Promise<readonly DoctorFinding[]> {
  const marks = await readMarks(join(dataDir, "high-water"), join(copy, "high-water"));
  const store = await openStore({ dir: copy, enabled: true });
  try {
    const source = { store, ...openKeyStores(join(dataDir, "keys"), randomBytes) };
    const faults: DoctorFinding[] = [];
    const tenants = new Set([...marks.keys(), ...(await listTenants(store))]);
    for (const tenant of tenants) {
      const mark = marks.get(tenant);
      // An empty chain has no end to check, and loading it would create its keys.
      const end = mark?.seq === -1 ? undefined : await loadChain(source, tenant, mark);
      if (end !== undefined && "refused" in end)
        faults.push(
          fail(end.refused, "run `gateway evidence verify --data`; restore the newest backup with `gateway restore`"),
        );
    }
    return faults.length > 0 ? faults : [ok(`${quantity(tenants.size, "chain")} of evidence, each with a valid end`)];
  } finally {
    await store.close();
  }
}

/** Tolerated difference between the clocks of two machines. */
const maxAheadMs = 5_000;

/** Checks the latest checkpoint of a running gateway. */
async function checkHead(admin: string): Promise<DoctorFinding> {
  try {
    const checkpoint = await callAdmin<PublishedCheckpoint>({ admin }, evidenceOperations.getCheckpoint);
    return judgeCheckpoint(checkpoint, Date.now());
  } catch (cause) {
    const { message } = GatewayError.from(cause);
    const fix = "correct `--admin` and GATEWAY_API_KEY";
    return warn(`no checkpoint from the gateway at ${admin}: ${message}`, fix);
  }
}

/** Checks a checkpoint against the keys in the same answer, and the clock. Nothing here proves the owner of the keys. */
export function judgeCheckpoint({ note, keys }: PublishedCheckpoint, nowMs: number): DoctorFinding {
  const checkpoint = parseCheckpoint(note);
  const fix = "run `gateway evidence verify`; restore the newest backup";
  if (checkpoint === undefined) return fail("the gateway's latest checkpoint is malformed", fix);
  const { size, time } = checkpoint;
  const valid = keys.filter(({ from_size: from, to_size: to }) => from <= size && size <= (to ?? size));
  const known = valid.map(({ public_key: key }) => VerifyingKey.parse(key)).filter((key) => key !== undefined);
  if (known.length < valid.length || !isCheckpointSignedBy(checkpoint, known)) {
    return fail(`the gateway's latest checkpoint, over ${size} records, is not signed by its key`, fix);
  }
  if (Date.parse(time) - nowMs > maxAheadMs) {
    return fail(
      `the gateway's latest record is of ${time}, which is in the future`,
      "set the clock of one of the two machines",
    );
  }
  return ok(`a signed checkpoint covers ${size} records of your tenant, the latest of ${time}`);
}
