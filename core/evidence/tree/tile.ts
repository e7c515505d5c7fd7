import { CompactRange, hashBytes } from "./merkle.ts";

/** Hashes in a tile: a tile at level L holds nodes of the tree's level 8 L. */
export const tileWidth = 256;
/** Levels of the tree between one level of tiles and the next. */
export const tileHeight = 8;

/** 256 neighbouring nodes that will not change any more. */
export interface FullTile {
  readonly level: number;
  readonly index: number;
  readonly hashes: Buffer;
}

/** The nodes at the right edge of a level of tiles that do not make a full tile yet. */
export interface PartialTile {
  readonly index: number;
  readonly hashes: Buffer;
}

/** The tree over a chain's records as it grows: its root at any moment, and the tiles that become full. */
export class TileTree {
  readonly #range: CompactRange;
  readonly #levels: TileLevel[];

  /** `edge` holds the partial tile of each level, the leaves' first: a tree with nothing in it has none. */
  constructor(edge: readonly PartialTile[] = []) {
    this.#levels = edge.map((tile) => new TileLevel(tile));
    this.#range = rangeOf(edge);
  }

  get size(): number {
    return this.#range.size;
  }

  root(): Buffer {
    return this.#range.root();
  }

  /** Adds a record by its leaf hash. Returns the tiles it makes full, lowest level first. */
  append(leaf: Buffer): FullTile[] {
    const path = this.#range.append(leaf);
    const full: FullTile[] = [];
    for (let level = 0; level * tileHeight < path.length; level++) {
      this.#levels[level] ??= new TileLevel({ index: 0, hashes: Buffer.alloc(0) });
      const tile = (this.#levels[level] as TileLevel).append(path[level * tileHeight] as Buffer);
      if (tile !== undefined) full.push({ level, ...tile });
    }
    return full;
  }
}

class TileLevel {
  #index: number;
  #count: number;
  #hashes: Buffer;

  constructor({ index, hashes }: PartialTile) {
    this.#index = index;
    this.#count = hashes.length / hashBytes;
    this.#hashes = Buffer.alloc(tileWidth * hashBytes);
    this.#hashes.set(hashes);
  }

  append(node: Buffer): PartialTile | undefined {
    this.#hashes.set(node, this.#count * hashBytes);
    this.#count++;
    if (this.#count < tileWidth) return undefined;
    const full = { index: this.#index, hashes: this.#hashes };
    this.#hashes = Buffer.alloc(tileWidth * hashBytes);
    this.#count = 0;
    this.#index++;
    return full;
  }
}

/** Root of the perfect subtree over a power of two of neighbouring nodes. */
export function subtreeRoot(nodes: Buffer): Buffer {
  const range = new CompactRange();
  for (const node of nodesOf(nodes)) range.append(node);
  return range.root();
}

/** The partial tiles of all levels are the whole right edge: their perfect subtrees, from the top level down. */
function rangeOf(edge: readonly PartialTile[]): CompactRange {
  const nodes = edge.toReversed().flatMap(({ hashes }) => perfectSubtrees(hashes));
  const size = edge.reduce((sum, { hashes }, level) => sum + (hashes.length / hashBytes) * tileWidth ** level, 0);
  return new CompactRange(size, nodes);
}

function perfectSubtrees(hashes: Buffer): Buffer[] {
  const roots: Buffer[] = [];
  let start = 0;
  for (let width = tileWidth / 2; width >= 1; width /= 2) {
    const end = start + width * hashBytes;
    if (end > hashes.length) continue;
    roots.push(subtreeRoot(hashes.subarray(start, end)));
    start = end;
  }
  return roots;
}

function nodesOf(hashes: Buffer): Buffer[] {
  return Array.from({ length: hashes.length / hashBytes }, (_, at) =>
    hashes.subarray(at * hashBytes, (at + 1) * hashBytes),
  );
}
