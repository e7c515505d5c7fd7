import { sha256Hex } from "../../action/canonical-json.ts";
import { recordKey, tileKey } from "../record/key-space.ts";
import type { Reader } from "../record/store-view.ts";
import {
  CompactRange,
  consistencyPath,
  hashBytes,
  inclusionPath,
  type LeafRange,
  leafHash,
  type PartialTile,
  subtreeRoot,
  TileTree,
  TreeFault,
  tileHeight,
  tileWidth,
} from "./merkle.ts";
import { type PrunedPrefix, readPruned } from "./pruned-prefix.ts";

/**
 * Reads nodes, roots and proofs of a tenant's tree out of its full tiles, and of its records where no tile is full yet;
 * of pruned ones, out of what was kept for this.
 * Checks nothing: what it reads is good for a checkpoint if its root is the checkpoint's. Throws TreeFault for holes.
 */
export class TileReader {
  readonly #reader: Reader;
  readonly #tenant: string;
  /** Hashes that proofs share, at most one for each full tile and 255 leaves: what is read is one state of the store. */
  readonly #shared = new Map<string, Promise<Buffer>>();
  #pruned: Promise<PrunedPrefix | undefined> | undefined;

  constructor(reader: Reader, tenant: string) {
    this.#reader = reader;
    this.#tenant = tenant;
  }

  /** The tree of the first `size` records, ready to grow. Reads at most 255 entries a level. */
  async grow(size: number): Promise<TileTree> {
    const edge: PartialTile[] = [];
    for (let level = 0, count = size; count > 0; level++, count = Math.floor(count / tileWidth)) {
      const index = Math.floor(count / tileWidth);
      edge.push({ index, hashes: await this.#nodes(level, index * tileWidth, count % tileWidth) });
    }
    return new TileTree(edge);
  }

  /** The leaf hashes of the records `first` up to, not including, `end`, all of one tile. */
  async leaves(first: number, end: number): Promise<Buffer> {
    return this.#nodes(0, first, end - first);
  }

  /** RFC 6962 root of the first `size` records. */
  async root(size: number): Promise<Buffer> {
    return this.#rangeRoot({ start: 0, end: size });
  }

  /** Proves that record `seq` is in the tree of `size` records. */
  async inclusionProof(seq: number, size: number): Promise<Buffer[]> {
    return this.#hashes(inclusionPath(seq, size));
  }

  /** Proves that the tree of `from` records is the beginning of the one of `to`. */
  async consistencyProof(from: number, to: number): Promise<Buffer[]> {
    return this.#hashes(consistencyPath(from, to));
  }

  async #hashes(path: readonly LeafRange[]): Promise<Buffer[]> {
    const hashes: Buffer[] = [];
    for (const range of path) hashes.push(await this.#rangeRoot(range));
    return hashes;
  }

  /** Ranges of RFC 6962 begin at a multiple of a power of two not below their length. */
  async #rangeRoot({ start, end }: LeafRange): Promise<Buffer> {
    const nodes: Buffer[] = [];
    for (let at = start; at < end; ) {
      let level = 0;
      while (at % 2 ** (level + 1) === 0 && at + 2 ** (level + 1) <= end) level++;
      nodes.push(await this.#node(level, at / 2 ** level));
      at += 2 ** level;
    }
    return new CompactRange(end - start, nodes).root();
  }

  /** The root of the perfect subtree `index` of a level of the tree. */
  async #node(level: number, index: number): Promise<Buffer> {
    const width = 2 ** (level % tileHeight);
    return subtreeRoot(await this.#nodes(Math.floor(level / tileHeight), index * width, width));
  }

  /** `count` neighbouring nodes of one tile, full or not. */
  async #nodes(level: number, first: number, count: number): Promise<Buffer> {
    if (count === 0) return Buffer.alloc(0);
    const index = Math.floor(first / tileWidth);
    const text = await this.#reader.get(tileKey(this.#tenant, level, index));
    if (text === undefined) return this.#nodesBelow(level, first, count);
    const tile = Buffer.from(text, "hex");
    if (tile.length !== tileWidth * hashBytes) throw new TreeFault(`tile ${index} of level ${level} is damaged`);
    const start = first - index * tileWidth;
    return tile.subarray(start * hashBytes, (start + count) * hashBytes);
  }

  async #nodesBelow(level: number, first: number, count: number): Promise<Buffer> {
    const nodes: Buffer[] = [];
    for (let index = first; index < first + count; index++) {
      nodes.push(await this.#sharedNode(level, index));
    }
    return Buffer.concat(nodes);
  }

  #sharedNode(level: number, index: number): Promise<Buffer> {
    const key = `${level}/${index}`;
    let node = this.#shared.get(key);
    if (node === undefined) {
      node = level === 0 ? this.#leaf(index) : this.#fullTile(level - 1, index);
      this.#shared.set(key, node);
    }
    return node;
  }

  async #fullTile(level: number, index: number): Promise<Buffer> {
    if ((await this.#reader.get(tileKey(this.#tenant, level, index))) === undefined) {
      throw new TreeFault(`tile ${index} of level ${level} is missing`);
    }
    return subtreeRoot(await this.#nodes(level, index * tileWidth, tileWidth));
  }

  async #leaf(seq: number): Promise<Buffer> {
    const text = await this.#reader.get(recordKey(this.#tenant, seq));
    if (text !== undefined) return leafHash(sha256Hex(text));
    this.#pruned ??= readPruned(this.#reader, this.#tenant);
    const leaf = (await this.#pruned)?.edgeLeaf(seq);
    if (leaf === undefined) throw new TreeFault(`record ${seq} is missing`);
    return leaf;
  }
}
