import { tileKey } from "./key-space.ts";
import { hashBytes } from "./merkle.ts";
import { PrunedPrefix } from "./pruned-prefix.ts";
import type { Reader } from "./store-view.ts";
import { tileWidth } from "./tile.ts";
import { TreeFault } from "./tree-fault.ts";

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
