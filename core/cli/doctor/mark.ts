import { stat } from "node:fs/promises";
import { dirname, join } from "node:path";
import { isInside } from "../../evidence/chain/outer-mark.ts";
import { isWritable } from "../../store/folder.ts";
import { type DoctorCheck, type DoctorFinding, fail, ok, warn } from "./finding.ts";

/** Checks that there is a mark outside the data folder, and that it can be written. */
export const checkMark: DoctorCheck = async ({ config: { dataDir, state } }) => [
  state.enabled ? await judgeMark(state.mark, dataDir) : ok("none is needed: state is kept in memory"),
];

async function judgeMark(path: string | null, dataDir: string): Promise<DoctorFinding> {
  if (path === null) {
    const fix = "set `state.mark` to a file outside the data folder, on another disk or volume at best";
    return warn("none is configured: an older copy of the data folder makes used approvals usable again", fix);
  }
  if (await isInside(path, dataDir)) {
    return fail(
      `\`${path}\` is in the data folder: both would be replaced at once`,
      "set `state.mark` to a file outside it",
    );
  }
  const there = await stat(path).catch(() => undefined);
  if (there?.isFile() === false) {
    return fail(`\`${path}\` is no regular file`, "set `state.mark` to a file that the gateway may create");
  }
  if (await isWritable(path)) return ok(`\`${path}\` is outside the data folder`);
  if (there !== undefined || !(await isWritable(dirname(path)))) {
    return fail(
      `\`${path}\` cannot be written`,
      "give it to the user of the gateway, or set `state.mark` to another file",
    );
  }
  if ((await stat(join(dataDir, "state")).catch(() => undefined)) === undefined) {
    return ok(`\`${path}\` is created with the state`);
  }
  const fix =
    "put it back where it was lost; else the next start creates it, and ends every pending and approved approval";
  return warn(`\`${path}\` is missing`, fix);
}
