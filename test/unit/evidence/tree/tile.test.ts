import { expect } from "chai";
import { sha256Hex } from "../../../../core/action/canonical-json.ts";
import { recordKey, tileKey } from "../../../../core/evidence/record/key-space.ts";
import {
  leafHash,
  rootOf,
  TileTree,
  TreeFault,
  verifyConsistency,
  verifyInclusion,
} from "../../../../core/evidence/tree/merkle.ts";
import { TileReader } from "../../../../core/evidence/tree/tile-reader.ts";
import { rejection } from "../../../support/ledger-world.ts";

const size = 66_100; // beyond one tile of the second level
const entries = new Map<string, string>();
const roots = new Map<number, Buffer>();
const watched = [1, 2, 255, 256, 257, 511, 512, 700, 65_535, 65_536, 65_537, 65_800, 66_100];
const reader = new TileReader({ get: async (key) => entries.get(key) }, "acme");

function text(seq: number): string {
  return `record ${seq}`;
}

/** The store of a chain that lost its records wherever a tile is full. In each suite: a hook outside runs for every file. */
function inOwnWorld(): void {
  before(() => {
    const tree = new TileTree();
    for (let seq = 0; seq < size; seq++) {
      entries.set(recordKey("acme", seq), text(seq));
      for (const { level, index, hashes } of tree.append(leafHash(sha256Hex(text(seq))))) {
        entries.set(tileKey("acme", level, index), hashes.toString("hex"));
        if (level === 0) for (let old = index * 256; old <= seq; old++) entries.delete(recordKey("acme", old));
      }
      if (watched.includes(seq + 1)) roots.set(seq + 1, tree.range.root());
    }
  });
}

describe("TileTree", () => {
  inOwnWorld();

  it("has the RFC 6962 root", () => {
    const leaves = Array.from({ length: 700 }, (_, seq) => leafHash(sha256Hex(text(seq))));
    expect(roots.get(700)).to.deep.equal(rootOf(leaves));
  });

  it("gives each tile once, when it is full", () => {
    const tiles = [...entries.keys()].filter((key) => key.includes("/tile/"));
    expect(tiles.filter((key) => key.includes("/tile/0/"))).to.have.length(Math.floor(size / 256));
    expect(tiles.filter((key) => key.includes("/tile/1/"))).to.deep.equal([tileKey("acme", 1, 0)]);
  });
});

describe("TileReader", () => {
  inOwnWorld();

  it("finds the root of every earlier size in the tiles", async () => {
    for (const at of watched) expect(await reader.root(at), String(at)).to.deep.equal(roots.get(at));
  });

  it("grows a tree that goes on as the first one did", async () => {
    for (const at of watched) {
      const tree = await reader.grow(at);
      expect(tree.range.size).to.equal(at);
      expect(tree.range.root(), String(at)).to.deep.equal(roots.get(at));
    }
    const grown = await reader.grow(65_300);
    const fresh = new Map<string, string>();
    for (let seq = 65_300; seq < size; seq++) {
      for (const { level, index, hashes } of grown.append(leafHash(sha256Hex(text(seq))))) {
        fresh.set(tileKey("acme", level, index), hashes.toString("hex"));
      }
    }
    expect(grown.range.root()).to.deep.equal(roots.get(size));
    expect([...fresh]).to.deep.equal([...fresh.keys()].map((key) => [key, entries.get(key)]));
    expect(fresh.has(tileKey("acme", 1, 0))).to.equal(true);
  });

  it("proves that a record is in the tree", async () => {
    for (const seq of [0, 1, 255, 256, 40_000, 65_535, 65_536, 66_099]) {
      const proof = await reader.inclusionProof(seq, size);
      const root = roots.get(size) ?? Buffer.alloc(0);
      expect(verifyInclusion(leafHash(sha256Hex(text(seq))), seq, size, proof, root), String(seq)).to.equal(true);
    }
  });

  it("proves that a tree is the beginning of a later one", async () => {
    for (const from of watched) {
      for (const to of watched.filter((each) => each >= from)) {
        const [before, after] = [roots.get(from) ?? Buffer.alloc(0), roots.get(to) ?? Buffer.alloc(0)];
        const proof = await reader.consistencyProof(from, to);
        expect(verifyConsistency(from, before, to, after, proof), `${from} of ${to}`).to.equal(true);
      }
    }
  });

  it("reads what proofs share once, while the tile above is not full", async () => {
    let reads = 0;
    const get = async (key: string): Promise<string | undefined> => {
      reads += 1;
      return key === tileKey("acme", 1, 0) ? undefined : entries.get(key);
    };
    const counting = new TileReader({ get }, "acme");
    for (let seq = 0; seq < 40; seq++) {
      const proof = await counting.inclusionProof(seq, 65_536);
      const root = roots.get(65_536) ?? Buffer.alloc(0);
      expect(verifyInclusion(leafHash(sha256Hex(text(seq))), seq, 65_536, proof, root), String(seq)).to.equal(true);
    }
    // Two for each of the 255 other tiles, and for each proof those of its own tile and of the tile that is missing.
    expect(reads).to.be.below(2 * 255 + 40 * 20);
  });

  describe("when the store has a hole", () => {
    const around = (missing: string, instead?: string): TileReader =>
      new TileReader({ get: async (key) => (key === missing ? instead : entries.get(key)) }, "acme");

    it("throws TreeFault for a record, a tile or its length", async () => {
      const record = around(recordKey("acme", size - 1)).root(size);
      expect(await rejection(record))
        .to.be.instanceOf(TreeFault)
        .with.property("message", "record 66099 is missing");
      const tile = around(tileKey("acme", 0, 257)).root(size);
      expect(await rejection(tile))
        .to.be.instanceOf(TreeFault)
        .with.property("message", "tile 257 of level 0 is missing");
      const cut = around(tileKey("acme", 1, 0), "00ff").root(size);
      expect(await rejection(cut))
        .to.be.instanceOf(TreeFault)
        .with.property("message", "tile 0 of level 1 is damaged");
    });
  });
});
