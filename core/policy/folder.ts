import { constants } from "node:fs";
import { open, readdir } from "node:fs/promises";
import { join } from "node:path";
import { canonicalJson } from "../kernel/canonical-json.ts";
import { contentDigest, sha256Hex } from "../kernel/digest.ts";
import type { Faults } from "./fault.ts";

const mostFiles = 256;
const largestFile = 1_048_576;
const deepestFolder = 8;
/** The signature is about the other files, so it is none of them. */
const signatureFile = "pack.sigstore.json";

/** One reading of a pack's folder: what is digested is what is parsed. */
export interface FolderSnapshot {
  /** Contents by path, `/` between its parts, in the order of the paths' code units. */
  readonly files: ReadonlyMap<string, Buffer>;
  /** `sha256:<hex>` over the canonical JSON of the sorted `[path, sha256 of the bytes]`, the signature left out. */
  readonly digest: string;
}

/**
 * Reads every file of a folder once: at most 256, each at most 1 MiB, no symbolic links (the folder itself may be
 * one), nothing that is neither file nor folder. What does not fit is a fault.
 */
export async function readFolder(path: string, faults: Faults): Promise<FolderSnapshot> {
  const names = await listFiles(path, "", faults, 1);
  if (names.length > mostFiles) {
    faults.add(at("."), `expected at most ${mostFiles} files, got ${names.length}`);
    return { files: new Map(), digest: "" };
  }
  const files = new Map<string, Buffer>();
  for (const name of names.toSorted()) {
    const bytes = await readBounded(join(path, name), name, faults);
    if (bytes !== undefined) files.set(name, bytes);
  }
  const entries = Array.from(files).filter(([name]) => name !== signatureFile);
  return { files, digest: contentDigest(canonicalJson(entries.map(([name, bytes]) => [name, sha256Hex(bytes)]))) };
}

function at(file: string): { file: string; line: number; column: number } {
  return { file, line: 1, column: 1 };
}

async function listFiles(root: string, folder: string, faults: Faults, depth: number): Promise<string[]> {
  if (depth > deepestFolder) {
    faults.add(at(folder), `expected at most ${deepestFolder} folders inside one another, got more`);
    return [];
  }
  const names: string[] = [];
  for (const entry of await readdir(join(root, folder), { withFileTypes: true })) {
    const name = folder === "" ? entry.name : `${folder}/${entry.name}`;
    if (entry.isDirectory()) names.push(...(await listFiles(root, name, faults, depth + 1)));
    else if (entry.isFile()) names.push(name);
    else
      faults.add(
        at(name),
        `expected a file or a folder, got ${entry.isSymbolicLink() ? "a symbolic link" : "something else"}`,
      );
    if (names.length > mostFiles) break;
  }
  return names;
}

/** Opened without following links or waiting for a pipe: the entry may have changed since it was listed. */
async function readBounded(path: string, name: string, faults: Faults): Promise<Buffer | undefined> {
  const file = await open(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
  try {
    const stat = await file.stat();
    if (!stat.isFile()) faults.add(at(name), "expected a file, got something else");
    else if (stat.size > largestFile) faults.add(at(name), `expected at most ${largestFile} bytes, got ${stat.size}`);
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
