import { execFile } from "node:child_process";
import { createHash } from "node:crypto";
import { mkdir, readdir, readFile, rename } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { repositoryRoot } from "../check/source-tree.ts";

const built = join(repositoryRoot, "dist/assembly");
const compiler = join(repositoryRoot, "node_modules/assemblyscript");

/**
 * A plugin's module, built from its folder's `asconfig.json` as `npm run build:plugins` builds it; kept in `dist` for the
 * next who asks for the same sources.
 */
export async function buildAssembly(folder: string): Promise<Buffer> {
  await mkdir(built, { recursive: true });
  const module = join(built, `${await digestOf([folder, "sdk/assembly"])}.wasm`);
  return readFile(module).catch(async () => {
    const unfinished = `${module}.${process.pid}`;
    const config = ["--config", `${folder}/asconfig.json`, "--baseDir", ".", "--outFile", unfinished];
    await promisify(execFile)(process.execPath, [join(compiler, "bin/asc.js"), ...config], { cwd: repositoryRoot });
    await rename(unfinished, module); // whole, for processes beside this one
    return readFile(module);
  });
}

/** Of every name and byte in the folders, and of the compiler's version. */
async function digestOf(folders: readonly string[]): Promise<string> {
  const hash = createHash("sha256").update(await readFile(join(compiler, "package.json")));
  for (const folder of folders) {
    const entries = await readdir(join(repositoryRoot, folder), { recursive: true, withFileTypes: true });
    const files = entries.filter((entry) => entry.isFile()).map(({ parentPath, name }) => join(parentPath, name));
    for (const file of files.toSorted()) hash.update(`${file}\n`).update(await readFile(file));
  }
  return hash.digest("hex");
}
