import { expect } from "chai";
import { Slices } from "../../../core/extension/slices.ts";

describe("Slices", () => {
  it("halve for a tenant that uses them up, for it alone, down to an eighth", () => {
    const slices = new Slices(800);
    const seen = [1, 2, 3, 4].map(() => {
      slices.usedUp("a", 0.5);
      return slices.of("a");
    });
    expect(seen).to.deep.equal([400, 200, 100, 100]);
    expect(slices.of("b")).to.equal(800);
  });

  it("double with each answer, up to the whole", () => {
    const slices = new Slices(800);
    for (let round = 0; round < 3; round++) slices.usedUp("a", 0.5);
    const seen = [1, 2, 3, 4].map(() => {
      slices.answered("a");
      return slices.of("a");
    });
    expect(seen).to.deep.equal([200, 400, 800, 800]);
  });

  it("shrink at once where one took longer than a millisecond", () => {
    const slices = new Slices(800);
    slices.usedUp("a", 1.5);
    expect(slices.of("a")).to.equal(100);
  });

  it("are never nothing", () => {
    const slices = new Slices(1);
    slices.usedUp("a", 5);
    expect(slices.of("a")).to.equal(1);
  });
});
