import { stat, statfs } from "node:fs/promises";
import { dirname } from "node:path";
import { type Examine, type Finding, fail, ok, warn } from "./finding.ts";

const mebibyte = 1_048_576;
const least = 256 * mebibyte;
const comfortable = 2_048 * mebibyte;

/** By the number that `statfs` tells: file systems that lose what they said is written, or that others share. */
const doubtful: ReadonlyMap<number, string> = new Map([
  [0x01021994, "tmpfs: it is memory, and gone with the machine"],
  [0x858458f6, "ramfs: it is memory, and gone with the machine"],
  [0x794c7630, "overlayfs: it is gone with its container, and syncs as the layer below does"],
  [0x6969, "NFS: what a lock or a sync is worth there depends on the server"],
  [0xff534d42, "CIFS: what a lock or a sync is worth there depends on the server"],
  [0xfe534d42, "SMB: what a lock or a sync is worth there depends on the server"],
  [0x65735546, "FUSE: what a sync is worth there depends on the program behind it"],
  [0x01021997, "9p: what a sync is worth there depends on the host"],
]);

/** The disk that the data folder lies on, or will lie on. */
export const examineDisk: Examine = async ({ config: { dataDir, state } }) => {
  if (!state.enabled) return [warn("nothing is kept: state and evidence are in memory", "set `state.enabled` to true")];
  const place = await nearestFolder(dataDir);
  const { type, bsize, bavail } = await statfs(place);
  const reason = doubtful.get(type >>> 0);
  const kind: readonly Finding[] =
    reason === undefined
      ? []
      : [warn(`\`${place}\` is on ${reason}`, "set `data_dir` to a folder on a disk of this machine")];
  return [judgeSpace(bavail * bsize), ...kind];
};

/** What so many free bytes are worth. */
export function judgeSpace(free: number): Finding {
  const told = `${Math.floor(free / mebibyte)} MiB free`;
  const mend = "make room, or set `data_dir` to a larger disk: without room no action is let through";
  if (free < least) return fail(told, mend);
  return free < comfortable ? warn(told, mend) : ok(told);
}

/** The folder itself, or the closest above it that is there. */
async function nearestFolder(path: string): Promise<string> {
  const found = await stat(path).catch(() => undefined);
  return found?.isDirectory() || dirname(path) === path ? path : nearestFolder(dirname(path));
}
