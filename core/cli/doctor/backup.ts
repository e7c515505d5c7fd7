import { join } from "node:path";
import { BackupFolder } from "../../backup/folder.ts";
import { type DoctorCheck, type DoctorFinding, ok, quantity, warn } from "./finding.ts";

const dayMs = 86_400_000;
/** Age from which the newest backup is one that nobody makes any more. */
const maxAgeDays = 7;

/** Checks that backups are made: how old the newest is, and where the keys are that no backup holds. */
export const checkBackups: DoctorCheck = async ({ config: { source, dataDir, state, resilience } }) => {
  if (!state.enabled) return [ok("none are needed: state is kept in memory")];
  if (source === null) return [ok(`local mode makes none: stop it and copy \`${dataDir}\`, keys and all`)];
  if (!resilience.enabled) {
    return [warn("none can be made while the gateway serves", "set `resilience.enabled` to true and restart")];
  }
  const found = [await judgeNewest(new BackupFolder(resilience.backupDir, dataDir), join(dataDir, "keys"))];
  if (resilience.tenant === null)
    found.push(warn("nobody may make one: keys belong to several tenants", "name one in `resilience.tenant`"));
  return found;
};

async function judgeNewest(folder: BackupFolder, keys: string): Promise<DoctorFinding> {
  const [name] = await namesIn(folder);
  const newest = name === undefined ? undefined : await folder.file(name);
  if (newest === undefined) {
    const fix = `run \`gateway backup create\`, and copy \`${keys}\` to a place of its own: no backup holds it`;
    return warn("there is none yet", fix);
  }
  const days = Math.floor((Date.now() - Date.parse(newest.madeAt)) / dayMs);
  if (days >= maxAgeDays)
    return warn(`the newest is ${quantity(days, "day")} old`, "run `gateway backup create`, from a timer at best");
  return ok(`the newest is of ${newest.madeAt}; without a copy of \`${keys}\` none can be restored`);
}

/** None before the first start, which creates the folder. */
async function namesIn(folder: BackupFolder): Promise<readonly string[]> {
  try {
    return await folder.names();
  } catch (cause) {
    if ((cause as NodeJS.ErrnoException).code === "ENOENT") return [];
    throw cause;
  }
}
