import { execFile } from "node:child_process";
import { lstat, mkdir, readdir, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { repositoryRoot } from "../check/source-tree.ts";

const run = promisify(execFile);

/** Clones what is committed here to a new folder. */
export async function cloneRepository(folder: string, umask = "022"): Promise<void> {
  await run("sh", ["-c", `umask ${umask} && git clone --quiet "$0" "$1"`, repositoryRoot, folder]);
}

/** Packs the gateway in a clone, or the SDK in its folder `sdk`, with the packages of this repository; returns the archive. */
export async function packClone(clone: string, umask = "022", part = "."): Promise<string> {
  await symlink(join(repositoryRoot, "node_modules"), join(clone, "node_modules")).catch(ignoreExisting);
  const folder = join(clone, part);
  const pack = "npm pack --silent --ignore-scripts=false";
  await run("sh", ["-c", `umask ${umask} && ${pack}`], { cwd: folder });
  const name = (await readdir(folder)).find((each) => each.endsWith(".tgz"));
  if (name === undefined) throw new Error(`expected an archive in ${folder}, got none`);
  return join(folder, name);
}

function ignoreExisting(cause: NodeJS.ErrnoException): void {
  if (cause.code !== "EEXIST") throw cause;
}

/** Installs an archive in a folder as its users do, with or without the optional packages. */
export async function installPackage(archive: string, folder: string, optional: boolean): Promise<void> {
  await mkdir(folder, { recursive: true });
  await writeFile(join(folder, "package.json"), "{}\n");
  const omit = optional ? [] : ["--omit=optional"];
  const options = ["--prefer-offline", "--ignore-scripts", "--no-audit", "--no-fund", "--silent"];
  await run("npm", ["install", ...options, ...omit, archive], { cwd: folder });
}

/** What the packages of a folder occupy on disk, in KiB as `du -k` counts, the heaviest first. */
export async function weighPackages(folder: string): Promise<readonly (readonly [name: string, kib: number])[]> {
  const top = join(folder, "node_modules");
  const names = await readdir(top);
  const scoped = names.map(async (name) =>
    name.startsWith("@") ? (await readdir(join(top, name))).map((each) => `${name}/${each}`) : [name],
  );
  const packages = (await Promise.all(scoped)).flat();
  const weights = await Promise.all(packages.map(async (name) => [name, await kibOf(join(top, name))] as const));
  return weights.toSorted(([, one], [, other]) => other - one);
}

async function kibOf(path: string): Promise<number> {
  const entries = await readdir(path, { recursive: true }).catch(() => []);
  const stats = await Promise.all([path, ...entries.map((entry) => join(path, entry))].map((each) => lstat(each)));
  return stats.reduce((sum, { blocks }) => sum + blocks / 2, 0);
}
