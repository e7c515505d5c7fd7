import { expect } from "chai";
import { isStateProof, StateMap } from "../../../../core/evidence/state/state-map.ts";
import { seededDice } from "../../../support/mutation.ts";
import { pathOf, proofOf, rootOf, saltOf } from "../../../support/state-world.ts";

/** Pages as a store keeps them. */
class Pages {
  readonly texts = new Map<string, string>();

  open(): StateMap {
    return new StateMap(async (prefix) => this.texts.get(prefix), saltOf);
  }

  keep(map: StateMap): void {
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
        pages.keep(map);
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
    await map.root();
    pages.keep(map);
    const later = pages.open();
    await later.set(pathOf("session", "7"), [3_000, 0]);
    await later.root();
    expect(later.changes().length).to.be.at.most(5);
  });
});
