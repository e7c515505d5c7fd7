import { createHash } from "node:crypto";
import { open, readdir, stat } from "node:fs/promises";
import { basename, join } from "node:path";

/** One bit of a file. */
export interface Bit {
  readonly path: string;
  readonly at: number;
  readonly bit: number;
}

/** Flips the bit in place; done again, the file is as it was. */
export async function flip({ path, at, bit }: Bit): Promise<void> {
  const file = await open(path, "r+");
  try {
    const byte = Buffer.alloc(1);
    await file.read(byte, 0, 1, at);
    await file.write(Buffer.of((byte[0] as number) ^ (1 << bit)), 0, 1, at);
  } finally {
    await file.close();
  }
}

export interface DataFile {
  readonly path: string;
  readonly size: number;
}

/** The files of a folder that hold something; the database's own log of events (`LOG`) does not count. */
export async function dataFiles(dir: string): Promise<readonly DataFile[]> {
  const entries = await readdir(dir, { recursive: true, withFileTypes: true });
  const paths = entries
    .filter((entry) => entry.isFile() && !entry.name.startsWith("LO"))
    .map(({ parentPath, name }) => join(parentPath, name))
    .sort();
  const files = await Promise.all(paths.map(async (path) => ({ path, size: (await stat(path)).size })));
  return files.filter(({ size }) => size > 0);
}

/** Numbers below a bound that follow from a seed. */
export class SeededChance {
  readonly #seed: string;
  #count = 0;

  constructor(seed: string) {
    this.#seed = seed;
  }

  below(bound: number): number {
    const digest = createHash("sha256")
      .update(`${this.#seed}/${this.#count++}`)
      .digest();
    return Number(digest.readBigUInt64LE() % BigInt(bound));
  }

  /** One of `values`, of which there is at least one. */
  of<T>(values: readonly T[]): T {
    return values[this.below(values.length)] as T;
  }
}

/** Any bit of any of `files`, each as likely as another. */
export function anyBit(files: readonly DataFile[], chance: SeededChance): Bit {
  const { path, size } = chance.of(files);
  return { path, at: chance.below(size), bit: chance.below(8) };
}

/** Bytes from which a table or a log is read, at both of its ends. */
const endBytes = 4_096;

/**
 * A bit that is read before others: of the first blocks of a table and of its index and footer, of the head of a log, of the
 * manifest, of the name of the manifest.
 */
export function firstBit(files: readonly DataFile[], chance: SeededChance): Bit {
  const { path, size } = chance.of(files.filter(({ path }) => /(?:\.ldb|\.log|MANIFEST-\d+|CURRENT)$/.test(path)));
  const part = Math.min(size, endBytes);
  const isTail = path.endsWith(".ldb") && chance.below(2) === 0;
  return { path, at: (isTail ? size - part : 0) + chance.below(part), bit: chance.below(8) };
}

/** Names a bit, so that the round can be repeated. */
export function nameOf({ path, at, bit }: Bit): string {
  return `${basename(path)}, byte ${at}, bit ${bit}`;
}
