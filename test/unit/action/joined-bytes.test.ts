import { expect } from "chai";
import fc from "fast-check";
import { JoinedBytes } from "../../../core/action/joined-bytes.ts";

const pieces = fc.array(
  fc.uint8Array({ maxLength: 40 }).map((bytes) => Buffer.from(bytes)),
  { maxLength: 12 },
);

describe("JoinedBytes", () => {
  it("are the pieces one behind another, however many bytes were expected", () => {
    fc.assert(
      fc.property(pieces, fc.nat({ max: 200 }), (parts, expected) => {
        const joined = new JoinedBytes(expected);
        for (let at = 0; at < parts.length; at++) {
          const whole = Buffer.concat(parts.slice(0, at + 1));
          expect(joined.add(parts[at] as Buffer).length).to.equal(whole.length);
          expect(joined.bytes.equals(whole)).to.equal(true);
          expect(Buffer.concat(joined.pieces).equals(whole)).to.equal(true);
          expect(joined.ends(16)).to.deep.equal([Buffer.from(whole.subarray(0, 16)), Buffer.from(whole.subarray(-16))]);
        }
      }),
    );
  });

  it("are in one where all of them were expected, and in their own pieces otherwise if these are long", () => {
    const parts = ["ab", "cd", "ef"].map((text) => Buffer.from(text));
    const add = (joined: JoinedBytes): number[] => parts.map((part) => joined.add(part).pieces.length);
    expect(add(new JoinedBytes(6))).to.deep.equal([1, 1, 1]);
    expect(add(new JoinedBytes(5))).to.deep.equal([1, 1, 2]);
    parts.splice(0, 3, ...[20_000, 20_000, 20_000].map((length) => Buffer.alloc(length, "x")));
    expect(add(new JoinedBytes(0))).to.deep.equal([1, 2, 3]);
  });

  it("take few pieces however small these come, so that many take no more memory than their bytes", () => {
    const joined = new JoinedBytes(0);
    for (let at = 0; at < 200_000; at++) joined.add(Buffer.from([at % 256]));
    expect(joined.pieces).to.have.length(5);
    for (let at = 0; at < 20; at++) joined.add(Buffer.alloc(20_000)).add(Buffer.from("x"));
    expect(joined.pieces.length).to.be.below(20);
    expect(joined.bytes).to.have.length(joined.length);
    expect(joined.ends(256)).to.deep.equal([joined.bytes.subarray(0, 256), joined.bytes.subarray(-256)]);
  });

  it("leave what they were made of as it was, and hand on a single piece itself", () => {
    const shared = Buffer.from("abcdef");
    const joined = new JoinedBytes(4).add(shared.subarray(0, 2));
    expect(joined.bytes.buffer).to.equal(shared.buffer);
    expect(joined.add(Buffer.from("XY")).bytes.toString()).to.equal("abXY");
    expect(shared.toString()).to.equal("abcdef");
  });
});
