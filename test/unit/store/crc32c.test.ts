import { expect } from "chai";
import fc from "fast-check";
import { crc32c } from "../../../core/store/crc32c.ts";

const ascending = Buffer.from(Array.from({ length: 32 }, (_, at) => at));
/** An iSCSI Read (10) command, from RFC 3720 B.4. */
const command = Buffer.from(
  "01c00000000000000000000000000000140000000000040000000014000000182800000000000000" + "0200000000000000",
  "hex",
);

describe("crc32c(bytes, before)", () => {
  for (const [what, bytes, sum] of [
    ["32 zeros", Buffer.alloc(32), 0x8a9136aa],
    ["32 ones", Buffer.alloc(32, 0xff), 0x62a8ab43],
    ["32 ascending bytes", ascending, 0x46dd794e],
    ["32 descending bytes", Buffer.from(ascending).reverse(), 0x113fdb5c],
    ["an iSCSI command", command, 0xd9963a56],
  ] as const) {
    it(`is that of RFC 3720 for ${what}`, () => {
      expect(crc32c(bytes)).to.equal(sum);
    });
  }

  it("is the same in two parts as in one, at every length and start", () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 100 }), fc.nat(100), (bytes, at) => {
        expect(crc32c(bytes.subarray(at), crc32c(bytes.subarray(0, at)))).to.equal(crc32c(bytes));
        expect(crc32c(bytes)).to.equal(bitByBit(bytes));
      }),
    );
  });
});

function bitByBit(bytes: Uint8Array): number {
  let crc = 0xffffffff;
  for (const byte of bytes) {
    crc ^= byte;
    for (let bit = 0; bit < 8; bit++) crc = (crc >>> 1) ^ (crc & 1 ? 0x82f63b78 : 0);
  }
  return ~crc >>> 0;
}
