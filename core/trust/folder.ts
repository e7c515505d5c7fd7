import { constants } from "node:fs";
import { open, readdir } from "node:fs/promises";
import { join } from "node:path";
import { canonicalJson, contentDigest, sha256Hex } from "../action/canonical-json.ts";
import { GatewayError } from "../action/error.ts";
import type { ExtensionFiles, ExtensionKind } from "./verified-extension.ts";

const maxFiles = 256;
const maxFile = 1_048_576;
const maxBytes = 16_777_216;
const maxFolder = 8;
const maxPath = 512;

/** Where the signatures of an extension lie, at the top of its folder. */
export const signatureFiles: Readonly<Record<ExtensionKind, string>> = {
  pack: "pack.sigstore.json",
  plugin: "plugin.sigstore.json",
};

/**
 * What at the top of a folder is its author's workplace: never read, so it is neither signed nor loaded, and counts for no
 * digest. A pack has none: its manifest may name any file as one of rules.
 */
const workplaces: Readonly<Record<ExtensionKind, readonly string[]>> = {
  pack: [],
  plugin: [".git", "build", "node_modules"],
};

/** One reading of an extension's folder. */
export interface ExtensionFolder extends ExtensionFiles {
  /** As the operator named it. */
  readonly path: string;
  /** SHA-256 in hex by path, of every file but the signature. */
  readonly fileDigests: ReadonlyMap<string, string>;
  /** The signature is about the other files, so it is none of them. */
  readonly signature: Buffer | undefined;
}

/**
 * Reads every file of a folder once, but for the workplace of a plugin's author (`.git`, `build`, `node_modules`); what is judged and compiled later is this reading. At most 256 files, each at most
 * 1 MiB and all 16 MiB, 8 folders deep, no symbolic links (the folder itself may be one), nothing that is neither file
 * nor folder. Throws EXTENSION_INVALID with all that does not fit.
 */
export async function readExtensionFolder(path: string, kind: ExtensionKind): Promise<ExtensionFolder> {
  const faults: string[] = [];
  const all = await readFiles(path, workplaces[kind], faults);
  if (faults.length > 0) throw new GatewayError("EXTENSION_INVALID", `\`${path}\`\n${faults.join("\n")}`);
  const signatureFile = signatureFiles[kind];
  const files = new Map([...all].filter(([name]) => name !== signatureFile));
  const fileDigests = new Map(Array.from(files, ([name, bytes]) => [name, sha256Hex(bytes)]));
  const digest = contentDigest(canonicalJson([...fileDigests]));
  return { path, kind, files, fileDigests, digest, signature: all.get(signatureFile) };
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

/** A name that is shown as it is, and that a statement can carry: bytes that are no UTF-8 arrive as U+FFFD. */
function isPlainPath(name: string): boolean {
  return name.length <= maxPath && !/[\p{Cc}\p{Cf}\p{Cs}\u2028\u2029\ufffd`]/u.test(name);
}

/** Opened without following links or waiting for a pipe: the entry may have changed since it was listed. */
async function readBounded(path: string, name: string, faults: string[]): Promise<Buffer | undefined> {
  const file = await open(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
  try {
    const stat = await file.stat();
    if (!stat.isFile()) faults.push(`${name}: expected a file, got something else`);
    else if (stat.size > maxFile) faults.push(`${name}: expected at most ${maxFile} bytes, got ${stat.size}`);
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
