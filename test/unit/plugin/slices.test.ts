import { expect } from "chai";
import { Slices } from "../../../core/plugin/plugin-runner.ts";

describe("Slices", () => {
  it("halve for a tenant that uses them up, for it alone, down to an eighth", () => {
    const slices = new Slices(800);
    const seen = [1, 2, 3, 4].map(() => {
      slices.usedUp("a", 0.1);
      return slices.of("a");
    });
    expect(seen).to.deep.equal([400, 200, 100, 100]);
    expect(slices.of("b")).to.equal(800);
  });

  it("double with each answer, up to the whole", () => {
    const slices = new Slices(800);
    for (let round = 0; round < 3; round++) slices.usedUp("a", 0.1);
    const seen = [1, 2, 3, 4].map(() => {
      slices.answered("a");
      return slices.of("a");
    });
    expect(seen).to.deep.equal([200, 400, 800, 800]);
  });

  it("shrink for a tenant by as much as one took longer than a millisecond, and no answer makes them grow again", () => {
    const slices = new Slices(8_000);
    slices.usedUp("a", 4);
    expect(slices.of("a")).to.equal(1_000);
    for (let round = 0; round < 100; round++) slices.answered("a");
    expect(slices.of("a")).to.equal(2_000);
    // Half of a slice in 2 ms: a whole one would have taken 4.
    slices.usedUp("a", 0.9);
    slices.usedUp("a", 2);
    expect(slices.of("a")).to.equal(125);
  });

  it("are not shortened by what others' calls cost, however many [S77]", () => {
    const slices = new Slices(8_000);
    for (let round = 0; round < 100; round++) slices.usedUp("a", 50);
    expect(slices.of("a")).to.be.below(10);
    expect(slices.of("b")).to.equal(8_000);
  });

  it("shrink by no more than an eighth at once, however long one took", () => {
    const slices = new Slices(8_000);
    slices.usedUp("a", 5_000);
    slices.answered("a");
    expect(slices.of("a")).to.equal(1_000);
  });

  it("grow again, by and by, where what uses them up is quick", () => {
    const slices = new Slices(8_000);
    slices.usedUp("a", 8);
    slices.answered("a");
    const quick = (): number => {
      slices.usedUp("a", 0.1);
      slices.answered("a");
      return slices.of("a");
    };
    expect([1, 2, 3].map(quick)).to.deep.equal([1_250, 1_563, 1_954]);
    for (let round = 0; round < 20; round++) quick();
    expect(slices.of("a")).to.equal(8_000);
  });

  it("are never nothing", () => {
    const slices = new Slices(1);
    slices.usedUp("a", 5);
    expect(slices.of("a")).to.equal(1);
  });
});
