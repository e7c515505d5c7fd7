import { mkdtemp, readFile, rm } from "node:fs/promises";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { contentDigest } from "../action/canonical-json.ts";
import { GatewayError } from "../action/error.ts";
import { BinaryReader } from "../plugin/wasm/binary.ts";
import { type OpenedPlugin, openPlugin } from "./plugin-folder.ts";
import { compileFault, compileLanguage, findLanguage, runCompiler } from "./plugin-language.ts";
import { testPlugin } from "./plugin-test.ts";
import { print, printFaults } from "./print.ts";
import { replaceFile } from "./replace-file.ts";
import { writeSourceMap } from "./source-map.ts";
import { repeatOnChange } from "./tree-watch.ts";

interface BuildOptions {
  readonly watch?: true;
  readonly json?: true;
}

const manifestFile = "plugin.yaml";
const moduleLine = /^module:[ \t]*(["']?)([a-z0-9][a-z0-9-]*\.wasm)\1[ \t]*(?:#.*)?$/m;
const digestLine = /^digest:[ \t]*[^\s#]*/m;

/** `gateway plugin build`. */
export async function build(folder: string, { watch, json }: BuildOptions): Promise<void> {
  if (watch === undefined) return void (await buildOnce(folder, json));
  await repeatOnChange(folder, async () => {
    const plugin = await buildOnce(folder, json);
    if (plugin !== undefined && plugin.tests.length > 0) await testPlugin(folder, json);
  });
}

async function buildOnce(folder: string, json: true | undefined): Promise<OpenedPlugin | undefined> {
  const plugin = await printFaults(json, async () => {
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

/** Writes the module, then its digest into the manifest: a manifest never names a missing module. */
async function writeModule(folder: string): Promise<void> {
  const manifest = await readText(join(folder, manifestFile));
  if (manifest === undefined) throw expected(folder, `a manifest \`${manifestFile}\`, got no such file`);
  const file = join(folder, moduleLine.exec(manifest)?.[2] ?? "plugin.wasm");
  const present = await readFile(file).catch(() => undefined);
  const module = await buildModule(folder, present);
  const sealed = withDigest(folder, manifest, contentDigest(module));
  if (present === undefined || !present.equals(module)) await replaceFile(file, module);
  if (sealed !== manifest) await replaceFile(join(folder, manifestFile), sealed);
}

async function buildModule(folder: string, present: Buffer | undefined): Promise<Uint8Array> {
  if ((await readText(join(folder, "asconfig.json"))) !== undefined) {
    const { module, sourceMap } = await compileAssembly(folder);
    await writeSourceMap(folder, sourceMap, module);
    return module;
  }
  const language = await findLanguage(folder);
  if (language !== undefined) return compileLanguage(folder, language);
  if (present !== undefined) return present;
  const sources = "an `asconfig.json`, `src/plugin.c` or `src/plugin.rs` to compile";
  throw expected(folder, `${sources}, or a module that another compiler made; got none of them`);
}

/** Replaces the digest in a manifest and nothing else. */
function withDigest(folder: string, manifest: string, digest: string): string {
  const line = `digest: ${digest}`;
  if (digestLine.test(manifest)) return manifest.replace(digestLine, line);
  if (moduleLine.test(manifest)) return manifest.replace(moduleLine, (module) => `${module}\n${line}`);
  throw expected(folder, `a line \`module: plugin.wasm\` in \`${manifestFile}\`, got none`);
}

function expected(folder: string, what: string): GatewayError {
  return new GatewayError("PLUGIN_INVALID", `\`${folder}\`: expected ${what}`);
}

/** Returns the text of a file; undefined where there is none. */
async function readText(path: string): Promise<string | undefined> {
  try {
    return await readFile(path, "utf8");
  } catch (cause) {
    const { code } = cause as NodeJS.ErrnoException;
    if (code === "ENOENT" || code === "ENOTDIR") return undefined;
    throw new GatewayError("EXTENSION_INVALID", `\`${path}\` cannot be read: ${code}`, { cause });
  }
}

/** A compiled plugin. */
interface Assembled {
  readonly module: Uint8Array;
  /** JSON. */
  readonly sourceMap: string;
}

const header = 8;

/**
 * Runs the AssemblyScript compiler on a plugin's folder, configured by its `asconfig.json`; it writes nothing there. Source
 * paths are relative to the folder, so the module does not depend on the folder's place. Rejects with PLUGIN_INVALID, each
 * fault with its place.
 */
async function compileAssembly(folder: string): Promise<Assembled> {
  const compiler = findCompiler(folder);
  const folderOfOutput = await mkdtemp(join(tmpdir(), "gateway-build-"));
  try {
    const output = join(folderOfOutput, "plugin.wasm");
    const config = ["--config", "asconfig.json", "--baseDir", ".", "--outFile", output, "--sourceMap"];
    // The compiler is one large WebAssembly module that runs for a second or two: optimizing it would take longer than that.
    const args = ["--enable-source-maps", "--liftoff-only", compiler, ...config];
    const { code, stderr } = await runCompiler(process.execPath, args, folder);
    if (code !== 0) throw compileFault(folder, stderr, readDiagnostics(stderr));
    const [module, sourceMap] = [await readFile(output), await readFile(`${output}.map`, "utf8")];
    return { module: withoutMapSection(module), sourceMap };
  } finally {
    await rm(folderOfOutput, { recursive: true });
  }
}

/** Returns the plugin's own compiler, or the one installed with the gateway. */
function findCompiler(folder: string): string {
  for (const from of [join(resolve(folder), "package.json"), import.meta.url]) {
    try {
      return createRequire(from).resolve("assemblyscript/bin/asc.js");
    } catch {
      // Not installed here: the next place may have one.
    }
  }
  const hint = "`npm install --save-dev assemblyscript` in the plugin's folder installs it";
  throw new GatewayError("PLUGIN_INVALID", `\`${folder}\`: expected the AssemblyScript compiler, found none; ${hint}`);
}

/** `ERROR TS2322: text`, some lines of source, then `in file(line,column)`. */
const diagnostic = /^ERROR (\w+: .*)\n(?:(?!ERROR ).*\n)*?.* in (\S+)\((\d+),(\d+)\)$/gm;
/** The compiler's message about an import of a package that is not installed. */
const missingFile = "TS6054: File '~lib/";

function readDiagnostics(stderr: string): Parameters<typeof compileFault>[2] {
  return Array.from(stderr.matchAll(diagnostic), ([, message = "", file = "", line, column]) => {
    const hint = message.startsWith(missingFile) ? "; `npm install` installs the packages of package.json" : "";
    return { file, line: Number(line), column: Number(column), message: message.replace(/\.$/, "") + hint };
  });
}

/** Drops the section that names the source map: the module is the same as without one. */
function withoutMapSection(module: Buffer): Uint8Array {
  const kept: Uint8Array[] = [module.subarray(0, header)];
  const reader = new BinaryReader(module, header);
  while (!reader.done) {
    const from = reader.at;
    const id = reader.byte();
    const section = reader.span(reader.u32());
    if (id !== 0 || section.name() !== "sourceMappingURL") kept.push(module.subarray(from, reader.at));
  }
  return Buffer.concat(kept);
}
