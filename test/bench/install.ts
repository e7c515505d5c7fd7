import { execFile } from "node:child_process";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { cloneRepository, installPackage, packClone, weighPackages } from "../support/package.ts";

/** Packages that are listed by name. */
const listed = 16;

/** Starts of which the middle one is printed. */
const starts = 9;

/** Prints what an installation of the package of the last commit weighs, without and with the optional packages, and what a command costs. */
const folder = await mkdtemp(join(tmpdir(), "install-"));
try {
  const clone = join(folder, "clone");
  await cloneRepository(clone);
  const archive = await packClone(clone);
  for (const optional of [false, true]) {
    const place = join(folder, String(optional));
    await installPackage(archive, place, optional);
    const weights = await weighPackages(place);
    const total = weights.reduce((sum, [, kib]) => sum + kib, 0);
    process.stdout.write(
      `\n${optional ? "with" : "without"} the optional packages: ${megabytes(total)} MB on disk in ${weights.length} packages\n`,
    );
    for (const [name, kib] of weights.slice(0, listed))
      process.stdout.write(`${megabytes(kib).padStart(8)}  ${name}\n`);
    const seconds: number[] = [];
    for (let at = 0; at < starts; at += 1) seconds.push(await cpuSecondsOf(place));
    process.stdout.write(`gateway --version: ${seconds.toSorted()[(starts - 1) / 2]?.toFixed(2)} s of CPU\n`);
  }
} finally {
  await rm(folder, { recursive: true });
}

/** In MB, of 1,000,000 bytes. */
function megabytes(kib: number): string {
  return ((kib * 1_024) / 1e6).toFixed(1);
}

/** What `gateway --version` takes of an installation, as bash counts its children. */
async function cpuSecondsOf(place: string): Promise<number> {
  const script = `TIMEFORMAT='%U %S'; time node_modules/.bin/gateway --version > /dev/null`;
  const { stderr } = await promisify(execFile)("bash", ["-c", script], { cwd: place });
  return stderr
    .trim()
    .split(" ")
    .reduce((sum, seconds) => sum + Number(seconds), 0);
}
