import { expect } from "chai";
import { isStateProof, StateMap } from "../../../../core/evidence/state/state-map.ts";
import { rejection } from "../../../support/ledger-world.ts";
import { seededDice } from "../../../support/mutation.ts";
import { pathOf, proofOf, rootOf, saltOf } from "../../../support/state-world.ts";

/** Pages as a store keeps them. */
class Pages {
  readonly texts = new Map<string, string>();
  #root = "";

  open(): StateMap {
    return new StateMap(this.#root, async (prefix) => this.texts.get(prefix), saltOf);
  }

  async keep(map: StateMap): Promise<void> {
    this.#root = await map.root();
    for (const [prefix, text] of map.changes()) {
      if (text === undefined) this.texts.delete(prefix);
      else this.texts.set(prefix, text);
    }
  }
}

const absent = pathOf("session", "absent");

describe("StateMap", () => {
  it("has the root and the proofs of its contents, however it came to them", async () => {
    for (let seed = 1; seed <= 6; seed++) {
      const dice = seededDice(seed);
      const pages = new Pages();
      const leaves = new Map<string, readonly number[]>();
      for (let batch = 0; batch < 8; batch++) {
        const map = pages.open();
        for (let change = 0; change < 12; change++) {
          const path = pathOf("session", String(dice(40)));
          if (dice(3) === 0) {
            leaves.delete(path);
            await map.delete(path);
          } else {
            leaves.set(path, [dice(1_000), dice(3)]);
            await map.set(path, leaves.get(path) ?? []);
          }
        }
        const root = await map.root();
        expect(root, `seed ${seed}`).to.equal(rootOf(leaves));
        await pages.keep(map);
        const again = pages.open();
        for (const path of [...leaves.keys(), absent]) {
          expect(await again.get(path)).to.deep.equal(leaves.get(path));
          const proof = await again.prove(path);
          expect(proof).to.deep.equal(proofOf(leaves, path));
          expect(isStateProof(root, path, proof)).to.equal(true);
        }
      }
    }
  });

  it("proves no other value, no other subject, and no absence of what is there", async () => {
    const map = new Pages().open();
    const path = pathOf("session", "one");
    for (let each = 0; each < 50; each++) await map.set(pathOf("session", String(each)), [each, 0]);
    await map.set(path, [7, 1]);
    const root = await map.root();
    const proof = await map.prove(path);
    const [beside = ""] = proof.beside;
    const lies = [
      { ...proof, value: [6, 1] },
      { ...proof, value: [], salt: "" },
      { ...proof, value: [], salt: "", other: [path, "0".repeat(64)] },
      { ...proof, other: [absent, "0".repeat(64)] },
      { ...proof, beside: proof.beside.slice(1) },
      { ...proof, beside: [beside, ...proof.beside] },
      await map.prove(absent),
    ];
    for (const lie of lies) expect(isStateProof(root, path, lie), JSON.stringify(lie)).to.equal(false);
    expect(isStateProof(root, absent, proof)).to.equal(false);
  });

  it("writes what lies above the changes, and nothing else", async () => {
    const pages = new Pages();
    const map = pages.open();
    for (let each = 0; each < 3_000; each++) await map.set(pathOf("session", String(each)), [each, 0]);
    await pages.keep(map);
    const later = pages.open();
    await later.set(pathOf("session", "7"), [3_000, 0]);
    await later.root();
    expect(later.changes().length).to.be.at.most(5);
  });

  it("reads no page but those that its root is of, and no leaf but those that their hashes are of", async () => {
    const pages = new Pages();
    const map = pages.open();
    for (let each = 0; each < 40; each++) await map.set(pathOf("session", String(each)), [each, 0]);
    await pages.keep(map);
    const page = JSON.parse(pages.texts.get("") ?? "") as unknown[];
    const at = page.findIndex((slot) => typeof slot === "string");
    const below = at.toString(16);
    const leaves = JSON.parse(pages.texts.get(below) ?? "") as unknown[];
    const [leaf, path] = leaves.flatMap((slot, index) => (Array.isArray(slot) ? [index, String(slot[0])] : [])) as [
      number,
      string,
    ];
    const other = "0".repeat(64);
    const damaged = [
      ["", undefined],
      ["", JSON.stringify(page.with(at, other))],
      ["", JSON.stringify(page.slice(1))],
      [below, undefined],
      [below, "7"],
      [below, JSON.stringify(leaves.with(leaf, null))],
      [below, JSON.stringify(leaves.with(leaf, [path, [7, 7], (leaves[leaf] as unknown[])[2]]))],
    ] as const;
    for (const [prefix, text] of damaged) {
      const before = pages.texts.get(prefix) ?? "";
      pages.texts.set(prefix, text ?? "");
      if (text === undefined) pages.texts.delete(prefix);
      for (const read of [pages.open().get(path), pages.open().prove(path), pages.open().set(path, [1, 1])]) {
        expect(await rejection(read), `${prefix} = ${text}`).to.include({ code: "EVIDENCE_UNAVAILABLE" });
      }
      pages.texts.set(prefix, before);
    }
    expect(await pages.open().get(path)).to.have.length(2);
  });
});
