import { copyFile, mkdir, readFile, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { brotliCompress, constants } from "node:zlib";

/** The repository; compiled code is two folders below it. */
const root = fileURLToPath(new URL("../../", import.meta.url));

/** A package of which a few files are used: they are copied beside the compiled code, with its license. */
interface VendoredPackage {
  readonly name: string;
  /** Each is copied with the modules of the package that it imports. */
  readonly files: readonly string[];
  /** Those that are kept compressed, with `.br` behind their names. */
  readonly compressed?: readonly string[];
}

/** Together 58 MB as packages, 4 MB of which are used, 3 MB as they are kept. */
export const vendoredPackages: readonly VendoredPackage[] = [
  { name: "gpt-tokenizer", files: ["cjs/package.json", "cjs/encoding/o200k_base.js"] },
  { name: "tree-sitter-bash", files: [], compressed: ["tree-sitter-bash.wasm"] },
  { name: "web-tree-sitter", files: ["web-tree-sitter.cjs", "web-tree-sitter.wasm"] },
];

/** A tenth of the size in a tenth of the time that the last percent of it would take. */
const compression = { params: { [constants.BROTLI_PARAM_QUALITY]: 9 } };

const relativeImport = /\brequire\("(\.[^"]+)"\)/g;

/** Copies the files of one package to `dist/vendor/<name>`. Rejects where one of them is missing. */
async function vendor({ name, files, compressed = [] }: VendoredPackage): Promise<void> {
  for (const path of compressed) {
    const to = join(root, "dist/vendor", name, `${path}.br`);
    await mkdir(dirname(to), { recursive: true });
    const bytes = await readFile(join(root, "node_modules", name, path));
    await writeFile(to, await promisify(brotliCompress)(bytes, compression));
  }
  const waiting = ["LICENSE", ...files];
  const copied = new Set<string>();
  for (let path = waiting.pop(); path !== undefined; path = waiting.pop()) {
    if (copied.has(path)) continue;
    copied.add(path);
    const from = join(root, "node_modules", name, path);
    const to = join(root, "dist/vendor", name, path);
    await mkdir(dirname(to), { recursive: true });
    await copyFile(from, to);
    if (!path.endsWith(".js")) continue;
    const text = await readFile(from, "utf8");
    for (const [, imported = ""] of text.matchAll(relativeImport)) waiting.push(join(dirname(path), imported));
  }
}

if (process.argv[1] === fileURLToPath(import.meta.url)) await Promise.all(vendoredPackages.map(vendor));
