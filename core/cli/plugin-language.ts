import { execFile } from "node:child_process";
import { access, constants, mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { delimiter, join, resolve } from "node:path";
import { GatewayError } from "../action/error.ts";

/** A language other than AssemblyScript: what `plugin new` writes, and how `plugin build` compiles it. */
interface Language {
  /** The file in `src/` that the compiler begins with. */
  readonly source: string;
  /** The file in `src/` that declares the ABI, and the SDK's folder that holds it. */
  readonly library: string;
  readonly sdkFolder: string;
  /** Debian's packages of the compiler. */
  readonly packages: string;
  /** Returns the compiler and its arguments for a module at `output`. Rejects with PLUGIN_INVALID where it is not installed. */
  readonly compiler: (folder: string, output: string) => Promise<readonly [program: string, ...args: string[]]>;
}

/** The languages by their name on the command line. */
export const compiledLanguages = {
  c: {
    source: "plugin.c",
    library: "gateway_plugin.h",
    sdkFolder: "c",
    packages: "clang lld",
    compiler: findClang,
  },
  rust: {
    source: "plugin.rs",
    library: "gateway_plugin.rs",
    sdkFolder: "rust",
    packages: "rustc libstd-rust-dev-wasm32 lld",
    compiler: findRust,
  },
} as const satisfies Readonly<Record<string, Language>>;

type Packaged = Pick<Language, "packages">;

/** Milliseconds. */
const compileMs = 120_000;
/** Bytes. */
const maxOutput = 1_048_576;

/** Finds the language of a plugin's folder by its source file; undefined where it has none of these. */
export async function findLanguage(folder: string): Promise<Language | undefined> {
  const found: Language[] = [];
  for (const language of Object.values(compiledLanguages)) {
    if (await isThere(join(folder, "src", language.source), constants.F_OK)) found.push(language);
  }
  if (found.length < 2) return found[0];
  const names = found.map(({ source }) => `\`src/${source}\``).join(" and ");
  throw new GatewayError(
    "PLUGIN_INVALID",
    `\`${folder}\`: expected one source to compile, got ${names}; remove the others`,
  );
}

/**
 * Compiles a plugin's source and returns the module; writes nothing in the folder. Source paths are relative to the folder,
 * so the module does not depend on the folder's place. Rejects with PLUGIN_INVALID, each fault with its place.
 */
export async function compileLanguage(folder: string, language: Language): Promise<Uint8Array> {
  const outputFolder = await mkdtemp(join(tmpdir(), "gateway-build-"));
  try {
    const output = join(outputFolder, "plugin.wasm");
    const [program, ...args] = await language.compiler(folder, output);
    const { code, stderr } = await runCompiler(program, args, folder);
    if (code === 0) return await readFile(output);
    const missing = missingLinker.exec(stderr)?.[1];
    if (missing !== undefined) throw notInstalled(folder, `the linker \`${missing}\``, "none", language);
    throw compileFault(folder, stderr, readDiagnostics(stderr));
  } finally {
    await rm(outputFolder, { recursive: true });
  }
}

async function findClang(folder: string, output: string): Promise<readonly [string, ...string[]]> {
  const [clang] = await findPrograms("clang");
  const [linker] = await findPrograms("wasm-ld");
  if (clang === undefined || linker === undefined) {
    const missing = clang === undefined ? "clang" : "wasm-ld";
    throw notInstalled(folder, "`clang` and `wasm-ld` on the PATH", `no \`${missing}\``, compiledLanguages.c);
  }
  const target = ["--target=wasm32", "-mcpu=mvp", "-O2", "-ffreestanding", "-nostdlib", "-Wl,--no-entry,--strip-all"];
  const warnings = ["-Wall", "-Wextra", "-fno-color-diagnostics", "-fno-caret-diagnostics"];
  return [clang, ...target, ...warnings, `src/${compiledLanguages.c.source}`, "-o", output];
}

const rustTarget = "wasm32-unknown-unknown";

/** Takes the first `rustc` of the PATH that has the library for WebAssembly: a machine may have several. */
async function findRust(folder: string, output: string): Promise<readonly [string, ...string[]]> {
  const compilers = await findPrograms("rustc");
  for (const rustc of compilers) {
    const asked = await runCompiler(rustc, ["--print", "target-libdir", "--target", rustTarget], folder);
    const library = asked.stdout.trim();
    if (asked.code === 0 && library !== "" && (await isThere(library, constants.R_OK))) {
      return [rustc, ...rustArguments, `src/${compiledLanguages.rust.source}`, "-o", output];
    }
  }
  const got = compilers.length === 0 ? "no `rustc`" : `\`${compilers.join("`, `")}\` without that library`;
  const expected = `\`rustc\` on the PATH with its library for ${rustTarget}`;
  throw notInstalled(
    folder,
    expected,
    got,
    compiledLanguages.rust,
    `; with rustup, \`rustup target add ${rustTarget}\``,
  );
}

/** A stack of one page: a module that begins with more than 1 MiB of memory never runs in the thread that serves. */
const rustArguments: readonly string[] = [
  ...["--edition", "2021", "--crate-type", "cdylib", "--crate-name", "plugin", "--target", rustTarget],
  ...[
    "opt-level=s",
    "lto=fat",
    "codegen-units=1",
    "panic=abort",
    "strip=symbols",
    "link-arg=-zstack-size=65536",
  ].flatMap((option) => ["-C", option]),
  ...["--error-format", "short", "--color", "never"],
];

function notInstalled(
  folder: string,
  expected: string,
  got: string,
  { packages }: Packaged,
  otherwise = "",
): GatewayError {
  const hint = `on Debian, \`apt-get install ${packages}\`${otherwise}`;
  return new GatewayError("PLUGIN_INVALID", `\`${folder}\`: expected ${expected}, got ${got}; ${hint}`);
}

/** Returns the programs of a name, in the order of the PATH, as absolute paths: they run in the plugin's folder. */
async function findPrograms(name: string): Promise<readonly string[]> {
  const found: string[] = [];
  for (const place of new Set((process.env.PATH ?? "").split(delimiter))) {
    const program = resolve(place, name);
    if (place !== "" && (await isThere(program, constants.X_OK))) found.push(program);
  }
  return found;
}

function isThere(path: string, mode: number): Promise<boolean> {
  return access(path, mode).then(
    () => true,
    () => false,
  );
}

interface CompilerRun {
  /** The exit code; null where there was none. */
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** Runs a compiler in a plugin's folder. Rejects with PLUGIN_INVALID where it does not end in time. */
export function runCompiler(program: string, args: readonly string[], folder: string): Promise<CompilerRun> {
  const options = { cwd: folder, timeout: compileMs, maxBuffer: maxOutput };
  return new Promise((done, reject) => {
    const child = execFile(program, args, options, (error, stdout, stderr) => {
      if (error !== null && child.exitCode === null && error.killed) {
        reject(new GatewayError("PLUGIN_INVALID", `\`${folder}\`: expected to compile within ${compileMs} ms`));
      } else done({ code: error === null ? 0 : child.exitCode, stdout, stderr });
    });
  });
}

interface Diagnostic {
  readonly file: string;
  readonly line: number;
  readonly column: number;
  readonly message: string;
}

/** The message of rustc. */
const missingLinker = /^error: linker `([\w-]+)` not found$/m;
/** `src/plugin.c:3:5: error: text`, of clang and of rustc. */
const diagnostic = /^([^\s:]+):(\d+):(\d+): ((?:fatal )?error(?:\[\w+\])?: .*)$/gm;

function readDiagnostics(stderr: string): readonly Diagnostic[] {
  return Array.from(stderr.matchAll(diagnostic), ([, file = "", line, column, message = ""]) => {
    return { file, line: Number(line), column: Number(column), message };
  });
}

/** Makes the error of a plugin that does not compile: its faults, or else all that the compiler printed. */
export function compileFault(folder: string, stderr: string, faults: readonly Diagnostic[]): GatewayError {
  const lines = faults.map(({ file, line, column, message }) => `${file}:${line}:${column}: ${message}`);
  const text = lines.length > 0 ? lines.join("\n") : stderr.trim();
  return new GatewayError("PLUGIN_INVALID", `\`${folder}\` does not compile\n${text}`, { data: { faults } });
}
