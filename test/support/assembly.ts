import { execFile } from "node:child_process";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { repositoryRoot } from "../check/source-tree.ts";

/** A plugin's module, built from its folder's `asconfig.json` as `npm run build:plugins` builds it. */
export async function buildAssembly(folder: string): Promise<Buffer> {
  const into = await mkdtemp(join(tmpdir(), "plugin-build-"));
  try {
    const built = join(into, "plugin.wasm");
    const compiler = join(repositoryRoot, "node_modules/assemblyscript/bin/asc.js");
    const config = ["--config", `${folder}/asconfig.json`, "--baseDir", ".", "--outFile", built];
    await promisify(execFile)(process.execPath, [compiler, ...config], { cwd: repositoryRoot });
    return await readFile(built);
  } finally {
    await rm(into, { recursive: true });
  }
}
