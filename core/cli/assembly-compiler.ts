import { execFile } from "node:child_process";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { BinaryReader } from "../extension/wasm/binary-reader.ts";
import { GatewayError } from "../kernel/error.ts";

/** What the compiler made of a plugin's source. */
export interface Assembled {
  readonly module: Uint8Array;
  /** JSON. */
  readonly sourceMap: string;
}

const compileMs = 120_000;
const mostOutput = 1_048_576;
const header = 8;

/**
 * Runs the AssemblyScript compiler on a plugin's folder as its `asconfig.json` says; it writes nothing there. Paths of
 * sources count from the folder, so the module is the same wherever the folder lies. Rejects with PLUGIN_INVALID, each
 * fault with its place.
 */
export async function compileAssembly(folder: string): Promise<Assembled> {
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
  const options = { cwd: folder, timeout: compileMs, maxBuffer: mostOutput };
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
