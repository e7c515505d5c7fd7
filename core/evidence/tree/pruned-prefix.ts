import { prunedKey, tileKey } from "../record/key-space.ts";
import type { Reader } from "../record/store-view.ts";
import { hashBytes, TreeFault, tileWidth } from "./merkle.ts";

const textPattern = /^([1-9]\d{0,15}) ((?:[0-9a-f]{64})*)$/;

/**
 * The remains of a chain's pruned records: the first kept record, and the leaf hashes from the last full tile up to
 * there, which no tile holds until the chain has grown past it. All leaves before those are in full tiles.
 */
export class PrunedPrefix {
  /** The first record that is kept together with all that follow. */
  readonly firstKept: number;
  readonly #edge: Buffer;

  constructor(firstKept: number, edge: Buffer) {
    this.firstKept = firstKept;
    this.#edge = edge;
  }

  /** The first record whose leaf is on the edge. */
  static edgeStart(firstKept: number): number {
    return firstKept - (firstKept % tileWidth);
  }

  /** From its text in the store; undefined for anything but the exact form. */
  static parse(text: string): PrunedPrefix | undefined {
    const [, first, hashes = ""] = textPattern.exec(text) ?? [];
    const firstKept = Number(first);
    if (!Number.isSafeInteger(firstKept)) return undefined;
    const edge = Buffer.from(hashes, "hex");
    return edge.length === (firstKept % tileWidth) * hashBytes ? new PrunedPrefix(firstKept, edge) : undefined;
  }

  toText(): string {
    return `${this.firstKept} ${this.#edge.toString("hex")}`;
  }

  /** The leaf of a record on the edge; undefined for any other. */
  edgeLeaf(seq: number): Buffer | undefined {
    const start = PrunedPrefix.edgeStart(this.firstKept);
    if (seq < start || seq >= this.firstKept) return undefined;
    return this.#edge.subarray((seq - start) * hashBytes, (seq - start + 1) * hashBytes);
  }
}

/** Undefined for a chain that begins at its genesis. Throws TreeFault where the entry is damaged. */
export async function readPruned(reader: Reader, tenant: string): Promise<PrunedPrefix | undefined> {
  const text = await reader.get(prunedKey(tenant));
  if (text === undefined) return undefined;
  const prefix = PrunedPrefix.parse(text);
  if (prefix === undefined) throw new TreeFault("what was kept of the pruned records is damaged");
  return prefix;
}

/** The number of the first record that was not pruned. Below it there may be some that stayed, or are about to go. */
export async function readFirstKept(reader: Reader, tenant: string): Promise<number> {
  return (await readPruned(reader, tenant))?.firstKept ?? 0;
}

/** The leaf hashes of all records before a cut, as they are stored. Remembers the tile read last. */
export class PrunedLeaves {
  readonly prefix: PrunedPrefix;
  readonly #reader: Reader;
  readonly #tenant: string;
  #tile: { readonly index: number; readonly hashes: Buffer } | undefined;

  constructor(reader: Reader, tenant: string, prefix: PrunedPrefix) {
    this.#reader = reader;
    this.#tenant = tenant;
    this.prefix = prefix;
  }

  /** The leaf of a record before the cut. Throws TreeFault where it is not kept. */
  async at(seq: number): Promise<Buffer> {
    // The edge first: where there is a tile, too, the tree built out of these shows a difference.
    const leaf = this.prefix.edgeLeaf(seq);
    if (leaf !== undefined) return leaf;
    const { index, hashes } = await this.#tileOf(seq);
    const start = (seq - index * tileWidth) * hashBytes;
    return hashes.subarray(start, start + hashBytes);
  }

  async #tileOf(seq: number): Promise<{ readonly index: number; readonly hashes: Buffer }> {
    const index = Math.floor(seq / tileWidth);
    if (this.#tile?.index === index) return this.#tile;
    const hashes = Buffer.from((await this.#reader.get(tileKey(this.#tenant, 0, index))) ?? "", "hex");
    if (seq >= PrunedPrefix.edgeStart(this.prefix.firstKept) || hashes.length !== tileWidth * hashBytes) {
      throw new TreeFault(`the leaf of record ${seq} is missing`);
    }
    this.#tile = { index, hashes };
    return this.#tile;
  }
}
