import { expect } from "chai";
import fc from "fast-check";
import { sha256Hex } from "../../../../core/action/canonical-json.ts";
import {
  CompactRange,
  consistencyPath,
  emptyRoot,
  inclusionPath,
  type LeafRange,
  leafHash,
  nodeHash,
  rootOf,
  verifyConsistency,
  verifyInclusion,
} from "../../../../core/evidence/tree/merkle.ts";

const leaves = Array.from({ length: 70 }, (_, index) => leafHash(sha256Hex(`record ${index}`)));

/** RFC 6962 §2.1, word for word. */
function naiveRoot(list: readonly Buffer[]): Buffer {
  if (list.length === 0) return emptyRoot;
  if (list.length === 1) return list[0] as Buffer;
  let k = 1;
  while (k * 2 < list.length) k *= 2;
  return nodeHash(naiveRoot(list.slice(0, k)), naiveRoot(list.slice(k)));
}

/** RFC 6962 §2.1.1, word for word. */
function naivePath(m: number, list: readonly Buffer[]): Buffer[] {
  if (list.length === 1) return [];
  let k = 1;
  while (k * 2 < list.length) k *= 2;
  if (m < k) return [...naivePath(m, list.slice(0, k)), naiveRoot(list.slice(k))];
  return [...naivePath(m - k, list.slice(k)), naiveRoot(list.slice(0, k))];
}

/** RFC 6962 §2.1.2, word for word. */
function naiveProof(m: number, list: readonly Buffer[], whole: boolean): Buffer[] {
  if (m === list.length) return whole ? [] : [naiveRoot(list)];
  let k = 1;
  while (k * 2 < list.length) k *= 2;
  if (m <= k) return [...naiveProof(m, list.slice(0, k), whole), naiveRoot(list.slice(k))];
  return [...naiveProof(m - k, list.slice(k), false), naiveRoot(list.slice(0, k))];
}

function hashesOf(path: readonly LeafRange[]): Buffer[] {
  return path.map(({ start, end }) => naiveRoot(leaves.slice(start, end)));
}

function flip(hash: Buffer): Buffer {
  const flipped = Buffer.from(hash);
  flipped[7] = (flipped[7] as number) ^ 0x20;
  return flipped;
}

describe("leafHash(recordDigest)", () => {
  it("is SHA-256 over 0x00 and the digest's bytes", () => {
    expect(leafHash("00".repeat(32)).toString("hex")).to.equal(
      "7f9c9e31ac8256ca2f258583df262dbc7d6f68f2a03043d5c99a4ae5a7396ce9",
    );
  });

  it("throws TypeError for what is not 64 hex digits", () => {
    for (const bad of ["", "00".repeat(31), "00".repeat(33), "zz".repeat(32)]) {
      expect(() => leafHash(bad), bad).to.throw(TypeError, "expected 64 hex digits");
    }
  });
});

describe("CompactRange", () => {
  it("has the RFC 6962 root at every size", () => {
    const range = new CompactRange();
    expect(range.root().toString("hex")).to.equal("e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    for (const [index, leaf] of leaves.entries()) {
      range.append(leaf);
      expect(range.root()).to.deep.equal(naiveRoot(leaves.slice(0, index + 1)));
    }
  });

  it("names the perfect subtrees that each leaf completes", () => {
    const range = new CompactRange();
    for (const [index, leaf] of leaves.entries()) {
      const path = range.append(leaf);
      expect(path).to.deep.equal(path.map((_, level) => naiveRoot(leaves.slice(index + 1 - 2 ** level, index + 1))));
      expect((index + 1) % 2 ** path.length).to.not.equal(0);
    }
  });

  it("refuses a number of nodes that does not fit the size", () => {
    expect(() => new CompactRange(3, [leaves[0] as Buffer])).to.throw(
      TypeError,
      "expected 2 nodes for 3 leaves, got 1",
    );
  });
});

describe("inclusionPath(index, size)", () => {
  it("is the path of RFC 6962 for every leaf of every tree to 64, and verifies", () => {
    for (let size = 1; size <= 64; size++) {
      const root = rootOf(leaves.slice(0, size));
      for (let index = 0; index < size; index++) {
        const proof = hashesOf(inclusionPath(index, size));
        expect(proof).to.deep.equal(naivePath(index, leaves.slice(0, size)));
        expect(verifyInclusion(leaves[index] as Buffer, index, size, proof, root)).to.equal(true);
      }
    }
  });

  it("throws TypeError for a leaf outside the tree", () => {
    expect(() => inclusionPath(3, 3)).to.throw(TypeError, "expected an index below 3, got 3");
  });
});

describe("consistencyPath(from, to)", () => {
  it("is the proof of RFC 6962 for every two sizes to 64, and verifies", () => {
    for (let to = 1; to <= 64; to++) {
      for (let from = 1; from <= to; from++) {
        const proof = hashesOf(consistencyPath(from, to));
        expect(proof).to.deep.equal(naiveProof(from, leaves.slice(0, to), true));
        const [before, after] = [rootOf(leaves.slice(0, from)), rootOf(leaves.slice(0, to))];
        expect(verifyConsistency(from, before, to, after, proof), `${from} of ${to}`).to.equal(true);
      }
    }
  });

  it("throws TypeError for a size outside the tree", () => {
    expect(() => consistencyPath(0, 3)).to.throw(TypeError, "expected a size from 1 to 3, got 0");
    expect(() => consistencyPath(4, 3)).to.throw(TypeError, "expected a size from 1 to 3, got 4");
  });
});

describe("proofs that were tampered with", () => {
  const place = fc.integer({ min: 2, max: 64 }).chain((size) => fc.tuple(fc.nat({ max: size - 1 }), fc.constant(size)));

  it("show no inclusion: another hash, order, length, index, leaf or root", () => {
    fc.assert(
      fc.property(place, fc.nat(), ([index, size], at) => {
        const proof = hashesOf(inclusionPath(index, size));
        const root = rootOf(leaves.slice(0, size));
        const leaf = leaves[index] as Buffer;
        const changed = proof.with(at % proof.length, flip(proof[at % proof.length] as Buffer));
        expect(verifyInclusion(leaf, index, size, changed, root)).to.equal(false);
        expect(verifyInclusion(leaf, index, size, proof.slice(1), root)).to.equal(false);
        expect(verifyInclusion(leaf, index, size, [...proof, root], root)).to.equal(false);
        if (proof.length > 1) expect(verifyInclusion(leaf, index, size, proof.toReversed(), root)).to.equal(false);
        expect(verifyInclusion(leaf, (index + 1) % size, size, proof, root)).to.equal(false);
        expect(verifyInclusion(flip(leaf), index, size, proof, root)).to.equal(false);
        expect(verifyInclusion(leaf, index, size, proof, flip(root))).to.equal(false);
      }),
      { numRuns: 300 },
    );
  });

  it("show no consistency: another hash, length, size or root", () => {
    fc.assert(
      fc.property(place, fc.nat(), ([index, to], at) => {
        const from = index + 1;
        const proof = hashesOf(consistencyPath(from, to));
        const [before, after] = [rootOf(leaves.slice(0, from)), rootOf(leaves.slice(0, to))];
        expect(verifyConsistency(from, flip(before), to, after, proof)).to.equal(false);
        expect(verifyConsistency(from, before, to, flip(after), proof)).to.equal(false);
        expect(verifyConsistency(from, before, to, after, [...proof, after])).to.equal(false);
        if (proof.length === 0) return;
        const changed = proof.with(at % proof.length, flip(proof[at % proof.length] as Buffer));
        expect(verifyConsistency(from, before, to, after, changed)).to.equal(false);
        expect(verifyConsistency(from, before, to, after, proof.slice(1))).to.equal(false);
      }),
      { numRuns: 300 },
    );
  });

  it("show nothing about leaves and sizes that cannot be", () => {
    const root = rootOf(leaves.slice(0, 1));
    const leaf = leaves[0] as Buffer;
    for (const [index, size] of [
      [-1, 1],
      [1, 1],
      [0, 0],
      [0.5, 1],
      [0, Number.NaN],
    ] as const) {
      expect(verifyInclusion(leaf, index, size, [], root)).to.equal(false);
    }
    for (const [from, to] of [
      [0, 1],
      [2, 1],
      [0.5, 0.5],
    ] as const) {
      expect(verifyConsistency(from, root, to, root, [])).to.equal(false);
    }
  });
});
