import { expect } from "chai";
import fc from "fast-check";
import { RecentMap } from "../../../core/action/recent-map.ts";

const key = fc.constantFrom("a", "b", "c", "d", "e");
const step = fc.record({ what: fc.constantFrom("get" as const, "set" as const, "delete" as const), key });

describe("RecentMap", () => {
  it("holds what a map holds that is ordered anew with each use", () => {
    fc.assert(
      fc.property(fc.array(step, { maxLength: 50 }), (steps) => {
        const map = new RecentMap<number>();
        const model = new Map<string, number>();
        for (const [turn, { what, key: name }] of steps.entries()) {
          const before = model.get(name);
          const hadIt = model.delete(name);
          if (what === "delete") expect(map.delete(name)).to.equal(hadIt);
          if (what === "get") expect(map.get(name)).to.equal(before);
          if (what === "set") map.set(name, turn);
          if (what === "set") model.set(name, turn);
          else if (what === "get" && before !== undefined) model.set(name, before);
          expect([...map.entries()]).to.deep.equal([...model]);
          expect([map.size, map.peek(name)]).to.deep.equal([model.size, model.get(name)]);
        }
      }),
    );
  });

  it("forgets the ones that were not used for longest", () => {
    const map = new RecentMap<number>();
    for (const [n, name] of ["a", "b", "c"].entries()) map.set(name, n);
    map.get("a");
    map.forgetOldest(2);
    map.forgetOldest(5);
    expect([...map.entries()].map(([name]) => name)).to.deep.equal(["c", "a"]);
  });

  it("lets whoever goes through it delete where it stands", () => {
    const map = new RecentMap<number>();
    for (const [n, name] of ["a", "b", "c"].entries()) map.set(name, n);
    for (const [name] of map.entries()) if (name !== "b") map.delete(name);
    expect([...map.entries()]).to.deep.equal([["b", 1]]);
  });
});
