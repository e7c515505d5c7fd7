import { hash } from "node:crypto";

/** Bytes of every hash of the tree. */
export const hashBytes = 32;

const leafInput = Buffer.alloc(1 + hashBytes, 0x00);
const nodeInput = Buffer.alloc(1 + 2 * hashBytes, 0x01);

/** RFC 6962 root of the tree that has no leaf. */
export const emptyRoot: Buffer = hash("sha256", "", "buffer");

/** RFC 6962 hash of a leaf whose content is a record's digest (64 hex digits). */
export function leafHash(recordDigest: string): Buffer {
  if (leafInput.write(recordDigest, 1, hashBytes, "hex") !== hashBytes || recordDigest.length !== 2 * hashBytes) {
    throw new TypeError("leafHash: expected 64 hex digits");
  }
  return hash("sha256", leafInput, "buffer");
}

/** Checks that a leaf's content is this digest. False for any other text. */
export function isLeafOf(leaf: Uint8Array, recordDigest: string): boolean {
  return /^[0-9a-f]{64}$/.test(recordDigest) && Buffer.compare(leafHash(recordDigest), leaf) === 0;
}

/** RFC 6962 hash of an inner node. */
export function nodeHash(left: Uint8Array, right: Uint8Array): Buffer {
  nodeInput.set(left, 1);
  nodeInput.set(right, 1 + hashBytes);
  return hash("sha256", nodeInput, "buffer");
}

/** Leaves `start` up to, not including, `end`. */
export interface LeafRange {
  readonly start: number;
  readonly end: number;
}

/** The RFC 6962 split of `count` > 1 leaves: the largest power of two below `count`. */
function splitPoint(count: number): number {
  let split = 1;
  while (split * 2 < count) split *= 2;
  return split;
}

/** The subtrees whose hashes prove that leaf `index` is in a tree of `size` leaves, in RFC 6962 order. */
export function inclusionPath(index: number, size: number): LeafRange[] {
  if (!Number.isSafeInteger(index) || index < 0 || index >= size) {
    throw new TypeError(`inclusionPath: expected an index below ${size}, got ${index}`);
  }
  const path: LeafRange[] = [];
  let [start, end] = [0, size];
  while (end - start > 1) {
    const middle = start + splitPoint(end - start);
    if (index < middle) {
      path.push({ start: middle, end });
      end = middle;
    } else {
      path.push({ start, end: middle });
      start = middle;
    }
  }
  return path.reverse();
}

/** The subtrees whose hashes prove that the tree of `from` leaves is the beginning of the tree of `to` leaves. */
export function consistencyPath(from: number, to: number): LeafRange[] {
  if (!Number.isSafeInteger(from) || from < 1 || from > to) {
    throw new TypeError(`consistencyPath: expected a size from 1 to ${to}, got ${from}`);
  }
  const path: LeafRange[] = [];
  let [start, end] = [0, to];
  while (end !== from) {
    const middle = start + splitPoint(end - start);
    if (from <= middle) {
      path.push({ start: middle, end });
      end = middle;
    } else {
      path.push({ start, end: middle });
      start = middle;
    }
  }
  if (start > 0) path.push({ start, end });
  return path.reverse();
}

/** Checks that `proof` leads from a leaf's hash to the root of a tree of `size` leaves. False for a proof of another length. */
export function verifyInclusion(
  leaf: Uint8Array,
  index: number,
  size: number,
  proof: readonly Uint8Array[],
  root: Uint8Array,
): boolean {
  if (!Number.isSafeInteger(index) || !Number.isSafeInteger(size) || index < 0 || index >= size) return false;
  let [node, last] = [index, size - 1];
  let hashed: Uint8Array = leaf;
  for (const sibling of proof) {
    if (last === 0) return false;
    if (node % 2 === 1 || node === last) {
      hashed = nodeHash(sibling, hashed);
      while (node % 2 === 0 && node !== 0) [node, last] = [node / 2, Math.floor(last / 2)];
    } else hashed = nodeHash(hashed, sibling);
    [node, last] = [Math.floor(node / 2), Math.floor(last / 2)];
  }
  return last === 0 && Buffer.compare(hashed, root) === 0;
}

/** Checks that the tree of `from` leaves with `fromRoot` is the beginning of the one of `to` with `toRoot`. */
export function verifyConsistency(
  from: number,
  fromRoot: Uint8Array,
  to: number,
  toRoot: Uint8Array,
  proof: readonly Uint8Array[],
): boolean {
  if (!Number.isSafeInteger(from) || !Number.isSafeInteger(to) || from < 1 || from > to) return false;
  if (from === to) return proof.length === 0 && Buffer.compare(fromRoot, toRoot) === 0;
  let [node, last] = [from - 1, to - 1];
  while (node % 2 === 1) [node, last] = [Math.floor(node / 2), Math.floor(last / 2)];
  const path = node === 0 ? [fromRoot, ...proof] : [...proof]; // a whole left subtree needs no hash of its own
  let old: Uint8Array | undefined = path[0];
  let grown: Uint8Array | undefined = old;
  if (old === undefined || grown === undefined) return false;
  for (const sibling of path.slice(1)) {
    if (last === 0) return false;
    if (node % 2 === 1 || node === last) {
      old = nodeHash(sibling, old);
      grown = nodeHash(sibling, grown);
      while (node % 2 === 0 && node !== 0) [node, last] = [node / 2, Math.floor(last / 2)];
    } else grown = nodeHash(grown, sibling);
    [node, last] = [Math.floor(node / 2), Math.floor(last / 2)];
  }
  return last === 0 && Buffer.compare(old, fromRoot) === 0 && Buffer.compare(grown, toRoot) === 0;
}

/** The right edge of an RFC 6962 tree: the roots of its perfect subtrees, largest first. Some 20 hashes for a million leaves. */
export class CompactRange {
  readonly #nodes: Buffer[];
  /** The number of leaves. Changed by `append` alone. */
  size: number;

  /** `nodes` are the roots of the perfect subtrees that make up `size` leaves, largest first. */
  constructor(size = 0, nodes: readonly Buffer[] = []) {
    if (nodes.length !== perfectSubtrees(size)) {
      throw new TypeError(
        `CompactRange: expected ${perfectSubtrees(size)} nodes for ${size} leaves, got ${nodes.length}`,
      );
    }
    this.size = size;
    this.#nodes = [...nodes];
  }

  /** Adds a leaf. Returns the roots of every perfect subtree that ends with it, by level: the leaf itself first. */
  append(leaf: Buffer): readonly Buffer[] {
    const path = [leaf];
    let node = leaf;
    for (let rest = this.size; rest % 2 === 1; rest = (rest - 1) / 2) {
      node = nodeHash(this.#nodes.pop() as Buffer, node);
      path.push(node);
    }
    this.#nodes.push(node);
    this.size++;
    return path;
  }

  root(): Buffer {
    const { length } = this.#nodes;
    if (length === 0) return emptyRoot;
    let root = this.#nodes[length - 1] as Buffer;
    for (let at = length - 2; at >= 0; at--) root = nodeHash(this.#nodes[at] as Buffer, root);
    return root;
  }
}

/** RFC 6962 root over the leaf hashes given. */
export function rootOf(leaves: Iterable<Buffer>): Buffer {
  const range = new CompactRange();
  for (const leaf of leaves) range.append(leaf);
  return range.root();
}

function perfectSubtrees(size: number): number {
  let count = 0;
  for (let rest = size; rest > 0; rest = Math.floor(rest / 2)) count += rest % 2;
  return count;
}

/** A stored tree has a hole: a tile or record is missing, or is not what it should be. */
export class TreeFault extends Error {}

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

/** A level of tiles: the one that is not full yet, and how many nodes it has. */
interface TileLevel {
  index: number;
  count: number;
  hashes: Buffer;
}

/** The tree over a chain's records as it grows: its root at any moment, and the tiles that become full. */
export class TileTree {
  /** The right edge, for size and root. It grows by `append` of the tree alone, or a tile would miss the leaf. */
  readonly range: CompactRange;
  readonly #levels: TileLevel[] = [];

  /** `edge` holds the partial tile of each level, the leaves' first: a tree with nothing in it has none. */
  constructor(edge: readonly PartialTile[] = []) {
    for (const { index, hashes } of edge) {
      const level = { index, count: hashes.length / hashBytes, hashes: Buffer.alloc(tileWidth * hashBytes) };
      level.hashes.set(hashes);
      this.#levels.push(level);
    }
    this.range = rangeOf(edge);
  }

  /** Adds a record by its leaf hash. Returns the tiles it makes full, lowest level first. */
  append(leaf: Buffer): FullTile[] {
    const path = this.range.append(leaf);
    const full: FullTile[] = [];
    for (let level = 0; level * tileHeight < path.length; level++) {
      const tile = this.#levels[level] ?? { index: 0, count: 0, hashes: Buffer.alloc(tileWidth * hashBytes) };
      tile.hashes.set(path[level * tileHeight] as Buffer, tile.count * hashBytes);
      tile.count++;
      this.#levels[level] = tile;
      if (tile.count < tileWidth) continue;
      full.push({ level, index: tile.index, hashes: tile.hashes });
      this.#levels[level] = { index: tile.index + 1, count: 0, hashes: Buffer.alloc(tileWidth * hashBytes) };
    }
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
  const nodes = edge.toReversed().flatMap(({ hashes }) => perfectRoots(hashes));
  const size = edge.reduce((sum, { hashes }, level) => sum + (hashes.length / hashBytes) * tileWidth ** level, 0);
  return new CompactRange(size, nodes);
}

function perfectRoots(hashes: Buffer): Buffer[] {
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
