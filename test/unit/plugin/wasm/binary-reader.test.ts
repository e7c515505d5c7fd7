import { expect } from "chai";
import fc from "fast-check";
import { BinaryReader, BinaryWriter, ModuleFault } from "../../../../core/plugin/wasm/binary.ts";

const of = (...bytes: readonly number[]): BinaryReader => new BinaryReader(Uint8Array.from(bytes));

/** Signed LEB128, as short as it can be. */
function signedBytes(value: bigint): number[] {
  const low = Number(BigInt.asUintN(7, value));
  const rest = value >> 7n;
  const done = (rest === 0n && low < 64) || (rest === -1n && low >= 64);
  return done ? [low] : [low | 0x80, ...signedBytes(rest)];
}

describe("BinaryReader", () => {
  it("reads back every unsigned number that a BinaryWriter wrote", () => {
    fc.assert(
      fc.property(fc.nat(0xffffffff), (value) => {
        const writer = new BinaryWriter();
        writer.u32(value);
        expect(new BinaryReader(writer.bytes).u32()).to.equal(value);
      }),
    );
  });

  it("reads back every number that was reserved and filled", () => {
    fc.assert(
      fc.property(fc.nat(0x7fffffff), (value) => {
        const writer = new BinaryWriter();
        writer.fill(writer.reserve(), value);
        const reader = new BinaryReader(writer.bytes);
        expect(reader.signed(32)).to.equal(value);
        reader.expectEnd("the number");
      }),
    );
  });

  it("reads every signed number of 32 and 33 bits", () => {
    fc.assert(
      fc.property(fc.bigInt(-(2n ** 32n), 2n ** 32n - 1n), (value) => {
        const bytes = signedBytes(value);
        expect(of(...bytes).signed(33)).to.equal(Number(value));
        if (BigInt.asIntN(32, value) === value) expect(of(...bytes).signed(32)).to.equal(Number(value));
      }),
    );
  });

  it("refuses numbers that are too long, or have bits beyond their width", () => {
    const tooLong: readonly (readonly [string, () => unknown])[] = [
      ["u32 of six bytes", () => of(0x80, 0x80, 0x80, 0x80, 0x80, 0x00).u32()],
      ["u32 of 33 bits", () => of(0xff, 0xff, 0xff, 0xff, 0x1f).u32()],
      ["s32 of six bytes", () => of(0x80, 0x80, 0x80, 0x80, 0x80, 0x00).signed(32)],
      ["s32 with a bit to spare that differs", () => of(0xff, 0xff, 0xff, 0xff, 0x4f).signed(32)],
      ["s64 of eleven bytes", () => of(...Array.from({ length: 10 }, () => 0x80), 0x00).signed(64)],
      ["s64 with bits to spare", () => of(...Array.from({ length: 9 }, () => 0x80), 0x02).signed(64)],
    ];
    for (const [name, read] of tooLong) expect(read, name).to.throw(ModuleFault, "a longer one");
    expect(of(0xff, 0xff, 0xff, 0xff, 0x0f).u32()).to.equal(0xffffffff);
    expect(of(0x80, 0x80, 0x80, 0x80, 0x78).signed(32)).to.equal(-(2 ** 31));
    expect(of(...Array.from({ length: 9 }, () => 0x80), 0x7f).signed(64)).to.equal(-(2 ** 63));
  });

  it("never reads beyond its span", () => {
    const reader = of(2, 1, 2, 3).span(3);
    expect(reader.count("items", 9)).to.equal(2);
    expect(() => reader.take(3)).to.throw(ModuleFault, "at byte 1: expected 3 bytes, got the end");
    expect([...reader.take(2)]).to.deep.equal([1, 2]);
    expect(() => reader.byte()).to.throw(ModuleFault);
    expect(() => of(3, 1, 2).count("items", 9)).to.throw(ModuleFault, "expected 3 items, got the end");
    expect(() => of(10).count("items", 9)).to.throw(ModuleFault, "expected at most 9 items, got 10");
  });
});
