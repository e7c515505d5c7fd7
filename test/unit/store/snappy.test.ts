import { expect } from "chai";
import fc from "fast-check";
import { uncompressSnappy } from "../../../core/store/snappy.ts";

const maxBytes = 1_000;

function uncompress(...bytes: (number | string)[]): string | undefined {
  const compressed = Buffer.concat(
    bytes.map((each) => (typeof each === "string" ? Buffer.from(each) : Buffer.of(each))),
  );
  return uncompressSnappy(compressed, maxBytes)?.toString();
}

describe("uncompressSnappy(bytes, maxBytes)", () => {
  it("reads literals, short and long", () => {
    expect(uncompress(3, 2 << 2, "abc")).to.equal("abc");
    const long = "x".repeat(200);
    expect(uncompress(0xc8, 0x01, 60 << 2, 199, long)).to.equal(long);
    expect(uncompress(0xc8, 0x01, 61 << 2, 199, 0, long)).to.equal(long);
  });

  it("reads copies with distances of one, two and four bytes, into themselves as well", () => {
    expect(uncompress(8, 3 << 2, "abcd", 0b000_000_01, 4), "one").to.equal("abcdabcd");
    expect(uncompress(8, 3 << 2, "abcd", (3 << 2) | 2, 4, 0), "two").to.equal("abcdabcd");
    expect(uncompress(8, 3 << 2, "abcd", (3 << 2) | 3, 4, 0, 0, 0), "four").to.equal("abcdabcd");
    expect(uncompress(9, 0, "a", (7 << 2) | 2, 1, 0), "itself").to.equal("aaaaaaaaa");
  });

  it("reads nothing", () => {
    expect(uncompress(0)).to.equal("");
  });

  for (const [what, ...bytes] of [
    ["no bytes"],
    ["a length that does not end", 0xff, 0xff, 0xff, 0xff, 0xff],
    ["more than is allowed", 0xe9, 0x07],
    ["less than it says", 4, 2 << 2, "abc"],
    ["more than it says", 2, 2 << 2, "abc"],
    ["a literal past the end", 9, 8 << 2, "abc"],
    ["a copy from before the start", 8, 3 << 2, "abcd", 0b000_000_01, 5],
    ["a copy from nowhere", 8, 3 << 2, "abcd", 0b000_000_01, 0],
    ["a copy that is cut", 8, 3 << 2, "abcd", (3 << 2) | 2],
  ] as const) {
    it(`refuses ${what}`, () => {
      expect(uncompress(...bytes)).to.equal(undefined);
    });
  }

  it("never throws, and never makes more than is allowed", () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 200 }), (bytes) => {
        expect(uncompressSnappy(bytes, maxBytes)?.length ?? 0).to.be.at.most(maxBytes);
      }),
    );
  });
});
