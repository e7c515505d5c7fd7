import { expect } from "chai";
import fc from "fast-check";
import { JoinedBytes } from "../../../core/action/joined-bytes.ts";

const pieces = fc.array(
  fc.uint8Array({ maxLength: 40 }).map((bytes) => Buffer.from(bytes)),
  { maxLength: 12 },
);

describe("JoinedBytes", () => {
  it("are the pieces one behind another, however many were expected", () => {
    fc.assert(
      fc.property(pieces, fc.nat({ max: 200 }), fc.nat({ max: 3 }), (given, expected, large) => {
        const parts = [...given, ...Array<Buffer>(large).fill(Buffer.alloc(70_000, "x"))];
        const joined = new JoinedBytes(expected);
        for (let at = 0; at < parts.length; at++) {
          joined.add(parts[at] as Buffer);
          expect(joined.bytes.equals(Buffer.concat(parts.slice(0, at + 1)))).to.equal(true);
        }
        expect(joined.bytes.equals(Buffer.concat(parts))).to.equal(true);
      }),
    );
  });

  it("leaves what it was given as it was, and hands on a single piece itself", () => {
    const shared = Buffer.from("abcdef");
    const joined = new JoinedBytes(0);
    const first = shared.subarray(0, 2);
    joined.add(first);
    expect(joined.bytes.buffer).to.equal(first.buffer);
    expect(joined.bytes.toString()).to.equal("ab");
    joined.add(Buffer.from("XY"));
    joined.add(Buffer.alloc(0));
    expect(joined.bytes.toString()).to.equal("abXY");
    expect(shared.toString()).to.equal("abcdef");
  });
});
