import { createHash } from "node:crypto";
import { expect } from "chai";
import { commit } from "../../../core/evidence/commitment.ts";
import { poolRandom } from "../../../core/kernel/random-pool.ts";

describe("commit(value, salt)", () => {
  it("is SHA-256 over the canonical list of name, salt and value", () => {
    const bytes = '["commitment-v1","c2FsdA",{"a":[1,"ü"],"b":null}]';
    const expected = createHash("sha256").update(bytes, "utf8").digest("hex");
    expect(commit({ b: null, a: [1, "ü"] }, "c2FsdA")).to.equal(`sha256:${expected}`);
  });

  it("changes with the salt", () => {
    expect(commit({ a: 1 }, "x")).to.not.equal(commit({ a: 1 }, "y"));
  });
});

describe("poolRandom(random)", () => {
  it("hands every byte of its source out once, in order", () => {
    let next = 0;
    const random = poolRandom((count) => Uint8Array.from({ length: count }, () => next++ % 251));
    const drawn: number[] = [];
    for (let count = 1; drawn.length < 4_000; count = (count % 40) + 1) drawn.push(...random(count));
    expect(drawn).to.deep.equal(drawn.map((_, index) => index % 251));
  });

  it("passes a request larger than its pool on", () => {
    expect(poolRandom((count) => new Uint8Array(count))(5_000)).to.have.length(5_000);
  });
});
