import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { Command } from "commander";
import { contentDigest } from "../kernel/digest.ts";
import { GatewayError } from "../kernel/error.ts";
import { compileAssembly } from "./assembly-compiler.ts";
import { type OpenedPlugin, openPlugin } from "./plugin-folder.ts";
import { testPlugin } from "./plugin-test.ts";
import { print, tellFaults } from "./print.ts";
import { replaceFile } from "./replace-file.ts";
import { writeSourceMap } from "./source-map.ts";
import { repeatOnChange } from "./work-watch.ts";

interface BuildOptions {
  readonly watch?: true;
  readonly json?: true;
}

const manifestFile = "plugin.yaml";
const moduleLine = /^module:[ \t]*(["']?)([a-z0-9][a-z0-9-]*\.wasm)\1[ \t]*(?:#.*)?$/m;
const digestLine = /^digest:[ \t]*[^\s#]*/m;

/** `gateway plugin build`. */
export function buildCommand(): Command {
  return new Command("build")
    .description(
      "compile a plugin from AssemblyScript, write its digest into plugin.yaml, and see that the sandbox takes it; " +
        "without an asconfig.json the module that lies there is taken as it is",
    )
    .argument("[folder]", "the plugin's folder", ".")
    .option("--watch", "build again after each change, and run the tests")
    .option("--json", "print JSON")
    .action(build);
}

async function build(folder: string, { watch, json }: BuildOptions): Promise<void> {
  if (watch === undefined) return void (await buildOnce(folder, json));
  await repeatOnChange(folder, async () => {
    const plugin = await buildOnce(folder, json);
    if (plugin !== undefined && plugin.tests.length > 0) await testPlugin(folder, json);
  });
}

async function buildOnce(folder: string, json: true | undefined): Promise<OpenedPlugin | undefined> {
  const plugin = await tellFaults(json, async () => {
    await writeModule(folder);
    return openPlugin(folder);
  });
  if (plugin === undefined) return undefined;
  const { name, version, module } = plugin.source;
  const digest = contentDigest(module);
  if (json) print(JSON.stringify({ ok: true, name, version, bytes: module.length, digest }));
  else print(`${name} ${version}: built, ${module.length} bytes, ${digest}`);
  return plugin;
}

/** Module first: a manifest never names a module that is not there yet. */
async function writeModule(folder: string): Promise<void> {
  const manifest = await readText(join(folder, manifestFile));
  if (manifest === undefined) throw expected(folder, `a manifest \`${manifestFile}\`, got no such file`);
  const file = join(folder, moduleLine.exec(manifest)?.[2] ?? "plugin.wasm");
  const present = await readFile(file).catch(() => undefined);
  const module = await makeModule(folder, present);
  const sealed = withDigest(folder, manifest, contentDigest(module));
  if (present === undefined || !present.equals(module)) await replaceFile(file, module);
  if (sealed !== manifest) await replaceFile(join(folder, manifestFile), sealed);
}

async function makeModule(folder: string, present: Buffer | undefined): Promise<Uint8Array> {
  if ((await readText(join(folder, "asconfig.json"))) === undefined) {
    if (present !== undefined) return present;
    throw expected(folder, "an `asconfig.json` to compile by, or a module that another compiler made; got neither");
  }
  const { module, sourceMap } = await compileAssembly(folder);
  await writeSourceMap(folder, sourceMap, module);
  return module;
}

/** The manifest with another digest, and all else as its author wrote it. */
function withDigest(folder: string, manifest: string, digest: string): string {
  const line = `digest: ${digest}`;
  if (digestLine.test(manifest)) return manifest.replace(digestLine, line);
  if (moduleLine.test(manifest)) return manifest.replace(moduleLine, (module) => `${module}\n${line}`);
  throw expected(folder, `a line \`module: plugin.wasm\` in \`${manifestFile}\`, got none`);
}

function expected(folder: string, what: string): GatewayError {
  return new GatewayError("PLUGIN_INVALID", `\`${folder}\`: expected ${what}`);
}

/** Undefined where there is no such file. */
async function readText(path: string): Promise<string | undefined> {
  try {
    return await readFile(path, "utf8");
  } catch (cause) {
    const { code } = cause as NodeJS.ErrnoException;
    if (code === "ENOENT" || code === "ENOTDIR") return undefined;
    throw new GatewayError("EXTENSION_INVALID", `\`${path}\` cannot be read: ${code}`, { cause });
  }
}
