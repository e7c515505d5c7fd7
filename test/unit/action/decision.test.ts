import { expect } from "chai";
import fc from "fast-check";
import { decisions, strictest } from "../../../core/action/decision.ts";

const decision = fc.constantFrom(...decisions);

describe("strictest(a, b)", () => {
  it("is the maximum of allow < review < block", () => {
    expect(strictest("allow", "review")).to.equal("review");
    expect(strictest("block", "review")).to.equal("block");
    expect(strictest("allow", "allow")).to.equal("allow");
  });

  it("is commutative, associative and idempotent, so order never matters", () => {
    fc.assert(
      fc.property(decision, decision, decision, (a, b, c) => {
        expect(strictest(a, b)).to.equal(strictest(b, a));
        expect(strictest(strictest(a, b), c)).to.equal(strictest(a, strictest(b, c)));
        expect(strictest(a, a)).to.equal(a);
      }),
    );
  });
});
