import { execFile } from "node:child_process";
import { mkdir, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { createRequire, SourceMap } from "node:module";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { Command } from "commander";
import { contentDigest } from "../action/canonical-json.ts";
import { GatewayError } from "../action/error.ts";
import { isJsonObject, type Json } from "../action/json.ts";
import { BinaryReader } from "../plugin/wasm/binary.ts";
import type { Origin } from "../plugin/wasm/body-meter.ts";
import { meterModule } from "../plugin/wasm/meter.ts";
import { parseModule } from "../plugin/wasm/module-parser.ts";
import { type OpenedPlugin, openPlugin } from "./plugin-folder.ts";
import { testPlugin } from "./plugin-test.ts";
import { print, replaceFile, tellFaults } from "./print.ts";
import { repeatOnChange } from "./tree-watch.ts";

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

/** What the compiler made of a plugin's source. */
interface Assembled {
  readonly module: Uint8Array;
  /** JSON. */
  readonly sourceMap: string;
}

const compileMs = 120_000;
const maxOutput = 1_048_576;
const header = 8;

/**
 * Runs the AssemblyScript compiler on a plugin's folder as its `asconfig.json` says; it writes nothing there. Paths of
 * sources count from the folder, so the module is the same wherever the folder lies. Rejects with PLUGIN_INVALID, each
 * fault with its place.
 */
async function compileAssembly(folder: string): Promise<Assembled> {
  const compiler = findCompiler(folder);
  const made = await mkdtemp(join(tmpdir(), "gateway-build-"));
  try {
    const output = join(made, "plugin.wasm");
    const config = ["--config", "asconfig.json", "--baseDir", ".", "--outFile", output, "--sourceMap"];
    await run(["--enable-source-maps", compiler, ...config], folder);
    const [module, sourceMap] = [await readFile(output), await readFile(`${output}.map`, "utf8")];
    return { module: withoutMapSection(module), sourceMap };
  } finally {
    await rm(made, { recursive: true });
  }
}

/** The plugin's own compiler, or the one that the gateway was installed with. */
function findCompiler(folder: string): string {
  for (const from of [join(resolve(folder), "package.json"), import.meta.url]) {
    try {
      return createRequire(from).resolve("assemblyscript/bin/asc.js");
    } catch {
      // Not there: the next place may have one.
    }
  }
  const hint = "`npm install --save-dev assemblyscript` in the plugin's folder brings it";
  throw new GatewayError("PLUGIN_INVALID", `\`${folder}\`: expected the AssemblyScript compiler, found none; ${hint}`);
}

function run(args: readonly string[], folder: string): Promise<void> {
  const options = { cwd: folder, timeout: compileMs, maxBuffer: maxOutput };
  return new Promise((done, reject) => {
    const child = execFile(process.execPath, args, options, (error, _stdout, stderr) => {
      if (error === null) done();
      else if (child.exitCode === null && error.killed) {
        reject(new GatewayError("PLUGIN_INVALID", `\`${folder}\`: expected to compile within ${compileMs} ms`));
      } else reject(compileFault(folder, stderr));
    });
  });
}

/** `ERROR TS2322: text`, some lines of source, then `in file(line,column)`. */
const diagnostic = /^ERROR (\w+: .*)\n(?:(?!ERROR ).*\n)*?.* in (\S+)\((\d+),(\d+)\)$/gm;
/** Where a package is imported that is not there. */
const missingFile = "TS6054: File '~lib/";

function compileFault(folder: string, stderr: string): GatewayError {
  const faults = Array.from(stderr.matchAll(diagnostic), ([, message = "", file = "", line, column]) => {
    const hint = message.startsWith(missingFile) ? "; `npm install` brings what package.json names" : "";
    return { file, line: Number(line), column: Number(column), message: message.replace(/\.$/, "") + hint };
  });
  const told = faults.map(({ file, line, column, message }) => `${file}:${line}:${column}: ${message}`);
  const text = told.length > 0 ? told.join("\n") : stderr.trim();
  return new GatewayError("PLUGIN_INVALID", `\`${folder}\` does not compile\n${text}`, { data: { faults } });
}

/** The module as the compiler writes it without a source map: the section that names the map is dropped. */
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

/** Where in the author's source an instruction comes from, as editors take it: `file:line:column`. */
export type Locate = (offsets: readonly number[]) => string | undefined;

/** Beside the plugin's files, where nothing is signed or loaded. */
const mapFile = join("build", "plugin.wasm.map");
const digestMember = "x_module_digest";
/** Bytes. */
const furthest = 64;

/** Keeps the compiler's source map of a module, for messages. */
async function writeSourceMap(folder: string, map: string, module: Uint8Array): Promise<void> {
  const content: Json = JSON.parse(map);
  if (!isJsonObject(content)) throw new TypeError("writeSourceMap: expected a source map");
  await mkdir(join(folder, "build"), { recursive: true });
  await writeFile(join(folder, mapFile), JSON.stringify({ ...content, [digestMember]: contentDigest(module) }));
}

/** Tells places of a module; nothing, where there is no source map of just this module. */
export async function readSourceMap(folder: string, module: Uint8Array): Promise<Locate> {
  try {
    const map = JSON.parse(await readFile(join(folder, mapFile), "utf8"));
    if (map[digestMember] !== contentDigest(module)) return () => undefined;
    const read = new SourceMap(map);
    return (offsets) => locate(read, offsets);
  } catch {
    return () => undefined;
  }
}

/** The innermost place in the author's own files; where there is none, the innermost of all. */
function locate(map: SourceMap, offsets: readonly number[]): string | undefined {
  const places = offsets.map((offset) => placeOf(map, offset)).filter((place) => place !== undefined);
  return places.find((place) => !place.startsWith("~lib/")) ?? places[0];
}

/** Some instructions, such as the beginning of a loop, have no place of their own: then that of the next that has one. */
function placeOf(map: SourceMap, offset: number): string | undefined {
  for (let at = offset; at < offset + furthest; at++) {
    const entry = map.findEntry(0, at);
    if (!("originalSource" in entry) || entry.originalSource === undefined) continue;
    return `${entry.originalSource}:${entry.originalLine + 1}:${entry.originalColumn + 1}`;
  }
  return undefined;
}

/**
 * Where in the module, as its author built it, the plugin was when it failed, by the stack of a trial: byte offsets of
 * instructions, the innermost call first; empty where it failed outside its code. `module` is one that the sandbox admits
 * under `memoryPages`.
 */
export function failurePlaces(stack: string, module: Uint8Array, memoryPages: number): readonly number[] {
  const metered = [...stack.matchAll(/wasm-function\[\d+\]:0x([0-9a-f]+)/g)];
  if (metered.length === 0) return [];
  const origins: Origin[] = [];
  meterModule(parseModule(module), memoryPages, origins);
  return metered.map(([, offset = ""]) => originOf(Number.parseInt(offset, 16), origins));
}

/** What the meter put before an instruction counts as that instruction. */
function originOf(metered: number, origins: readonly Origin[]): number {
  return origins.findLast((origin) => origin.metered <= metered)?.original ?? 0;
}
