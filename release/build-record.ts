import { createHash } from "node:crypto";
import { readdir, readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { installation } from "../core/cli/scaffold.ts";
import { loadOnTrial } from "../core/cli/trial-load.ts";
import { localConfig } from "../core/config/local.ts";
import type { BuildRecord } from "../core/policy/passed-tests.ts";
import { readExtensionFolder } from "../core/trust/folder.ts";

const file = join(installation, "dist/core/build-record");

/** The digest of the program: of all compiled code, the packages it needs and what is vendored. */
async function programDigest(): Promise<string> {
  const hash = createHash("sha256").update(await readFile(join(installation, "package.json")));
  for (const folder of ["dist/core", "dist/vendor"]) {
    const names = await readdir(join(installation, folder), { recursive: true });
    for (const name of names.filter((each) => /\.(?:c?js|wasm|br|json)$/.test(each)).sort()) {
      hash.update(`\n${folder}/${name}\n`).update(await readFile(join(installation, folder, name)));
    }
  }
  return hash.digest("hex");
}

/** The folders that are shipped in `folder`: each is an extension. */
async function shippedIn(folder: "policy-packs" | "plugins"): Promise<readonly string[]> {
  const entries = await readdir(join(installation, folder), { withFileTypes: true });
  return entries
    .filter((entry) => entry.isDirectory())
    .map(({ name }) => join(installation, folder, name))
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
const [packs, plugins] = [await shippedIn("policy-packs"), await shippedIn("plugins")];
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
