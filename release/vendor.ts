import { copyFile, mkdir, readFile, writeFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { isDeepStrictEqual, promisify } from "node:util";
import { brotliCompress, constants } from "node:zlib";

/** The repository; compiled code is two folders below it. */
const root = fileURLToPath(new URL("../../", import.meta.url));

/** A package of which a few files are used: they are copied beside the compiled code, with its license. */
interface VendoredPackage {
  readonly name: string;
  /** Each is copied with the modules of the package that it imports. */
  readonly files: readonly string[];
  /** Files that are kept compressed, with `.br` behind their names. */
  readonly compressed?: readonly string[];
  /** Modules whose default export is a list of 2 MB: kept as compressed JSON, which a module of their name reads. */
  readonly lists?: readonly string[];
}

/** Together 58 MB as packages, 4 MB of which are used, 1.3 MB as they are kept. */
export const vendoredPackages: readonly VendoredPackage[] = [
  {
    name: "gpt-tokenizer",
    files: ["cjs/package.json", "cjs/encoding/o200k_base.js"],
    lists: ["cjs/bpeRanks/o200k_base.js"],
  },
  { name: "tree-sitter-bash", files: [], compressed: ["tree-sitter-bash.wasm"] },
  { name: "web-tree-sitter", files: ["web-tree-sitter.cjs"], compressed: ["web-tree-sitter.wasm"] },
];

/** A quality that takes a tenth of the time of the best, for files that are a few percent larger. */
const compression = { params: { [constants.BROTLI_PARAM_QUALITY]: 9 } };

const listReader = `"use strict";
const { readFileSync } = require("node:fs");
const { brotliDecompressSync } = require("node:zlib");
exports.default = JSON.parse(brotliDecompressSync(readFileSync(\`\${__filename}on.br\`)));
`;

const relativeImport = /\brequire\("(\.[^"]+)"\)/g;

/** Copies the files of one package to `dist/vendor/<name>`. Rejects where one of them is missing. */
async function vendor({ name, files, compressed = [], lists = [] }: VendoredPackage): Promise<void> {
  const waiting = ["LICENSE", ...files, ...compressed];
  const copied = new Set<string>();
  for (let path = waiting.pop(); path !== undefined; path = waiting.pop()) {
    if (copied.has(path)) continue;
    copied.add(path);
    const from = join(root, "node_modules", name, path);
    const to = join(root, "dist/vendor", name, path);
    await mkdir(dirname(to), { recursive: true });
    if (compressed.includes(path)) await writeCompressed(`${to}.br`, await readFile(from));
    else if (lists.includes(path)) await writeList(from, to);
    else await copyFile(from, to);
    if (!path.endsWith(".js") || lists.includes(path)) continue;
    const text = await readFile(from, "utf8");
    for (const [, imported = ""] of text.matchAll(relativeImport)) waiting.push(join(dirname(path), imported));
  }
}

/** Writes a list of texts and numbers to `<to>on.br`, and to `to` the module that exports it. */
async function writeList(from: string, to: string): Promise<void> {
  const { default: list } = createRequire(import.meta.url)(from) as { readonly default: readonly unknown[] };
  const text = JSON.stringify(list);
  if (!isDeepStrictEqual(JSON.parse(text), list))
    throw new Error(`expected a list that JSON can hold, got \`${from}\``);
  await writeCompressed(`${to}on.br`, Buffer.from(text));
  await writeFile(to, listReader);
}

async function writeCompressed(to: string, bytes: Uint8Array): Promise<void> {
  await writeFile(to, await promisify(brotliCompress)(bytes, compression));
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  await Promise.all(vendoredPackages.map(vendor));
}
