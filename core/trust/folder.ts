import { constants } from "node:fs";
import { open, readdir, stat } from "node:fs/promises";
import { join } from "node:path";
import { canonicalJson, contentDigest, sha256Hex } from "../action/canonical-json.ts";
import { GatewayError } from "../action/error.ts";
import type { ExtensionFiles, ExtensionKind } from "./verified-extension.ts";

const maxFiles = 256;
const maxText = 1_048_576;
const maxModule = 4_194_304;
const maxBytes = 16_777_216;
const maxFolder = 8;
const maxPath = 512;

/** Bounds of an extension's folder, the signature file included; `depth` counts the parts of a path. */
export const extensionBounds = {
  files: maxFiles,
  bytes: maxBytes,
  depth: maxFolder,
  pathLength: maxPath,
} as const;

/** Returns the bytes that a file of an extension may have: 4 MiB for a WASM module, 1 MiB for any other. */
export function maxBytesOf(name: string): number {
  return name.endsWith(".wasm") ? maxModule : maxText;
}

/** The file at the top of an extension's folder that holds its signatures. */
export const signatureFiles: Readonly<Record<ExtensionKind, string>> = {
  pack: "pack.sigstore.json",
  plugin: "plugin.sigstore.json",
  engine: "engine.sigstore.json",
};

/**
 * The author's working folders at the top of an extension: never read, so neither signed nor loaded, and not part of
 * the digest. A pack has none: its manifest may name any file as a rule file.
 */
export const workplaces: Readonly<Record<ExtensionKind, readonly string[]>> = {
  pack: [],
  plugin: [".git", "build", "node_modules"],
  engine: [],
};

/** One reading of an extension's folder. */
export interface ExtensionFolder extends ExtensionFiles {
  /** The path as the operator wrote it. */
  readonly path: string;
  /** SHA-256 in hex by path, of every file but the signature. */
  readonly fileDigests: ReadonlyMap<string, string>;
  /** The signature file; undefined where there is none. It covers the other files. */
  readonly signature: Buffer | undefined;
}

/**
 * Reads every file of a folder once, except a plugin author's working folders (`.git`, `build`, `node_modules`); later
 * checks and the compiler use these bytes. At most 256 files, a module of at most 4 MiB, any other of at most 1 MiB,
 * 16 MiB in all, 8 folders deep, no symbolic links (the folder itself may be one), only files and folders. Throws
 * EXTENSION_INVALID with every fault.
 */
export async function readExtensionFolder(path: string, kind: ExtensionKind): Promise<ExtensionFolder> {
  await checkKind(path, kind);
  const faults: string[] = [];
  const all = await readFiles(path, workplaces[kind], faults);
  if (faults.length > 0) throw new GatewayError("EXTENSION_INVALID", `\`${path}\`\n${faults.join("\n")}`);
  return assembleFolder(path, kind, all);
}

/** Returns what reading a folder with these files would return. `path` is where it lies, or will lie. */
export function assembleFolder(path: string, kind: ExtensionKind, all: ReadonlyMap<string, Buffer>): ExtensionFolder {
  const signatureFile = signatureFiles[kind];
  const names = [...all.keys()].filter((name) => name !== signatureFile).sort();
  const files = new Map(names.map((name) => [name, all.get(name) as Buffer]));
  const fileDigests = new Map(Array.from(files, ([name, bytes]) => [name, sha256Hex(bytes)]));
  const digest = contentDigest(canonicalJson([...fileDigests]));
  return { path, kind, files, fileDigests, digest, signature: all.get(signatureFile) };
}

/**
 * Throws EXTENSION_INVALID for a plugin in the place of a pack, or a pack in that of a plugin: whatever else is wrong with
 * its files is wrong by that.
 */
async function checkKind(path: string, kind: ExtensionKind): Promise<void> {
  if (kind === "engine") return;
  const other = kind === "pack" ? "plugin" : "pack";
  const isThere = (name: string): Promise<boolean> => stat(join(path, name)).then(Boolean, () => false);
  const [own, others] = await Promise.all([isThere(`${kind}.yaml`), isThere(`${other}.yaml`)]);
  if (own || !others) return;
  const found = `expected a ${kind} with \`${kind}.yaml\`, got a ${other} with \`${other}.yaml\``;
  throw new GatewayError("EXTENSION_INVALID", `\`${path}\`: ${found}; its commands are those of \`gateway ${other}\``);
}

const unreadable: Readonly<Record<string, string>> = {
  ENOENT: "no such folder",
  ENOTDIR: "not a folder",
  EACCES: "this user may not read it",
  ELOOP: "a file became a symbolic link",
};

async function readFiles(
  path: string,
  skipped: readonly string[],
  faults: string[],
): Promise<ReadonlyMap<string, Buffer>> {
  const files = new Map<string, Buffer>();
  try {
    const names = await listFiles(path, "", skipped, faults);
    if (names.length > maxFiles) faults.push(`expected at most ${maxFiles} files, got more`);
    if (faults.length > 0) return files;
    let total = 0;
    for (const name of names.toSorted()) {
      const bytes = await readBounded(join(path, name), name, faults);
      if (bytes !== undefined) files.set(name, bytes);
      total += bytes?.length ?? 0;
      if (total > maxBytes) {
        faults.push(`expected at most ${maxBytes} bytes in all, got more`);
        break;
      }
    }
    return files;
  } catch (cause) {
    const code = cause instanceof Error && "code" in cause ? String(cause.code) : String(cause);
    const reason = unreadable[code] ?? code;
    throw new GatewayError("EXTENSION_INVALID", `\`${path}\` cannot be read: ${reason}`, { cause });
  }
}

async function listFiles(
  root: string,
  folder: string,
  skipped: readonly string[],
  faults: string[],
  depth = 1,
): Promise<string[]> {
  if (depth > maxFolder) {
    faults.push(`${folder}: expected at most ${maxFolder} folders inside one another, got more`);
    return [];
  }
  const names: string[] = [];
  for (const entry of await readdir(join(root, folder), { withFileTypes: true })) {
    const name = folder === "" ? entry.name : `${folder}/${entry.name}`;
    if (skipped.includes(name)) continue;
    if (!isPlainPath(name)) faults.push(`expected names of printable characters, got ${JSON.stringify(name)}`);
    else if (entry.isDirectory()) names.push(...(await listFiles(root, name, skipped, faults, depth + 1)));
    else if (entry.isFile()) names.push(name);
    else
      faults.push(
        `${name}: expected a file or a folder, got ${entry.isSymbolicLink() ? "a symbolic link" : "something else"}`,
      );
    if (names.length > maxFiles || faults.length > maxFiles) break;
  }
  return names;
}

/** Returns true for a name that displays as written and fits into a statement: invalid UTF-8 arrives as U+FFFD. */
function isPlainPath(name: string): boolean {
  return name.length <= maxPath && !/[\p{Cc}\p{Cf}\p{Cs}\u2028\u2029\ufffd`]/u.test(name);
}

/** Opens without following links or blocking on a pipe: the entry may have changed since it was listed. */
async function readBounded(path: string, name: string, faults: string[]): Promise<Buffer | undefined> {
  const file = await open(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
  try {
    const stat = await file.stat();
    if (!stat.isFile()) faults.push(`${name}: expected a file, got something else`);
    else if (stat.size > maxBytesOf(name))
      faults.push(`${name}: expected at most ${maxBytesOf(name)} bytes, got ${stat.size}`);
    else {
      const bytes = Buffer.alloc(stat.size);
      const { bytesRead } = await file.read(bytes, 0, stat.size, 0);
      return bytes.subarray(0, bytesRead);
    }
    return undefined;
  } finally {
    await file.close();
  }
}
