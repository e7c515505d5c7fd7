import { createHash } from "node:crypto";
import { readdir, readFile, rm, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { loadOnTrial } from "../core/cli/trial-load.ts";
import { localConfig } from "../core/config/local.ts";
import type { BuildRecord } from "../core/policy/passed-tests.ts";
import { readExtensionFolder } from "../core/trust/folder.ts";

/** The repository; compiled code is two folders below it. */
const root = fileURLToPath(new URL("../../", import.meta.url));
const file = join(root, "dist/core/build-record");

/** The digest of the program: of all compiled code, the packages it needs and what is vendored. */
async function programDigest(): Promise<string> {
  const hash = createHash("sha256").update(await readFile(join(root, "package.json")));
  for (const folder of ["dist/core", "dist/vendor"]) {
    const names = await readdir(join(root, folder), { recursive: true });
    for (const name of names.filter((each) => /\.(?:c?js|wasm|br|json)$/.test(each)).sort()) {
      hash.update(`\n${folder}/${name}\n`).update(await readFile(join(root, folder, name)));
    }
  }
  return hash.digest("hex");
}

/** The shipped folders of a kind: those with its manifest. */
async function shipped(folder: "policy-packs" | "plugins", kind: "pack" | "plugin"): Promise<readonly string[]> {
  const names = await readdir(join(root, folder), { recursive: true });
  return names
    .filter((name) => /^[^/]+\/[^/]+$/.test(name) && name.endsWith(`/${kind}.yaml`))
    .map((name) => join(root, folder, dirname(name)))
    .sort();
}

/** Loads packs and plugins as a gateway does that has never seen them. Rejects where an own test fails: it must not be shipped. */
async function runOwnTests(packs: readonly string[], plugins: readonly string[]): Promise<void> {
  const config = localConfig({
    dataDir: "data",
    mark: null,
    packs: packs.map((path) => ({ path, mode: "enforce", settings: {}, shadowRules: [] })),
    plugins: plugins.map((path) => ({ path, mode: "enforce", phases: ["input", "output"], taints: [], settings: {} })),
    upstreams: [],
    keys: [],
  });
  await loadOnTrial(config, () => undefined);
}

async function earlierRecord(): Promise<BuildRecord | null> {
  return readFile(file, "utf8").then(JSON.parse, () => null);
}

const digest = await programDigest();
const [packs, plugins] = [await shipped("policy-packs", "pack"), await shipped("plugins", "plugin")];
const folders = [
  ...packs.map((path) => readExtensionFolder(path, "pack")),
  ...plugins.map((path) => readExtensionFolder(path, "plugin")),
];
const passed = (await Promise.all(folders)).map((folder) => folder.digest);
const record = JSON.stringify({ digest, passed } satisfies BuildRecord);
if (JSON.stringify(await earlierRecord()) !== record) {
  await rm(file, { force: true });
  await runOwnTests(packs, plugins);
  await writeFile(file, record);
}
