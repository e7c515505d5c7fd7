import { emptyRoot, nodeHash } from "./merkle.ts";

/** The right edge of an RFC 6962 tree: the roots of its perfect subtrees, largest first. Some 20 hashes for a million leaves. */
export class CompactRange {
  readonly #nodes: Buffer[];
  #size: number;

  /** `nodes` are the roots of the perfect subtrees that make up `size` leaves, largest first. */
  constructor(size = 0, nodes: readonly Buffer[] = []) {
    if (nodes.length !== perfectSubtrees(size)) {
      throw new TypeError(
        `CompactRange: expected ${perfectSubtrees(size)} nodes for ${size} leaves, got ${nodes.length}`,
      );
    }
    this.#size = size;
    this.#nodes = [...nodes];
  }

  get size(): number {
    return this.#size;
  }

  /** Adds a leaf. Returns the roots of every perfect subtree that ends with it, by level: the leaf itself first. */
  append(leaf: Buffer): readonly Buffer[] {
    const path = [leaf];
    let node = leaf;
    for (let rest = this.#size; rest % 2 === 1; rest = (rest - 1) / 2) {
      node = nodeHash(this.#nodes.pop() as Buffer, node);
      path.push(node);
    }
    this.#nodes.push(node);
    this.#size++;
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
