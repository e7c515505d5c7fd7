import { BinaryReader, type BinaryWriter } from "./binary.ts";
import { emptyBlock, indexed, type MeterGlobals } from "./metered-code.ts";
import { valueTypes } from "./module.ts";
import { op } from "./opcode.ts";

/**
 * The memory in chunks of 16 KiB, of which a bit of `MeterGlobals.written` stands for every sixty-fourth: set where one of
 * them may have been written to since the memory was restored. An access marks the chunk in which it begins; it may
 * reach at most `maxSpill` bytes into the next.
 */
export const chunkShift = 14;
export const chunkBits = 64;
export const maxSpill = 7;
/** The mark that stands for the whole memory. */
export const everyChunk = -1;

/** The scratch locals of a metered function, after its own: a length or an address, then values by their type. */
export const scratchTypes = [
  valueTypes.i32,
  valueTypes.i32,
  valueTypes.i32,
  valueTypes.i64,
  valueTypes.f32,
  valueTypes.f64,
] as const;
const scratch = { length: 0, address: 1, i32: 2, i64: 3, f32: 4, f64: 5 } as const;

/** The values of `i32.store` to `i64.store32`, in the order of their codes. */
const storedValues = ["i32", "i64", "f32", "f64", "i32", "i32", "i64", "i64", "i64"] as const;

/** Returns true for an instruction that stores a value. */
export function isStore(code: number): boolean {
  return code >= op.i32Store && code < op.i32Store + storedValues.length;
}

/** Writes a store and the mark of its address. `locals` is the index of the first scratch local. */
export function writeMarkedStore(out: BinaryWriter, globals: MeterGlobals, locals: number, store: Uint8Array): void {
  const reader = new BinaryReader(store);
  const value = storedValues[reader.byte() - op.i32Store] ?? "i32";
  reader.u32();
  const offset = reader.u32();
  indexed(out, op.localSet, locals + scratch[value]);
  indexed(out, op.localTee, locals + scratch.address);
  indexed(out, op.globalGet, globals.written);
  out.write([op.i64Const, 1]);
  indexed(out, op.localGet, locals + scratch.address);
  // Where the sum does not fit 32 bits, the store traps.
  if (offset > 0) {
    out.write([op.i32Const]);
    out.signed32(offset | 0);
    out.write([op.i32Add]);
  }
  out.write([op.i32Const, chunkShift, op.i32ShrU, op.i64ExtendU, op.i64Shl, op.i64Or]);
  indexed(out, op.globalSet, globals.written);
  indexed(out, op.localGet, locals + scratch[value]);
  out.write(store);
}

/** Writes the mark of what a `memory.copy` or `memory.fill` will write to; its operands stay on the stack. */
export function writeBulkMark(out: BinaryWriter, globals: MeterGlobals, locals: number): void {
  indexed(out, op.localSet, locals + scratch.length);
  indexed(out, op.localSet, locals + scratch.i32);
  indexed(out, op.localTee, locals + scratch.address);
  indexed(out, op.localGet, locals + scratch.length);
  indexed(out, op.call, globals.mark);
  indexed(out, op.localGet, locals + scratch.address);
  indexed(out, op.localGet, locals + scratch.i32);
  indexed(out, op.localGet, locals + scratch.length);
}

/**
 * Writes the code of the function that marks a range: `(address, length)`. From one chunk to the next but one and beyond
 * sixty-three of them it marks all.
 */
export function writeMarkFunction(out: BinaryWriter, { written }: MeterGlobals): void {
  const [address, length] = [0, 1];
  // Nothing is written where there is no length.
  indexed(out, op.localGet, length);
  out.write([op.i32Eqz, op.if, emptyBlock, op.return, op.end]);
  // The chunks beyond the first one, in `length`.
  indexed(out, op.localGet, address);
  indexed(out, op.localGet, length);
  out.write([op.i32Add, op.i32Const, 1, op.i32Sub, op.i32Const, chunkShift, op.i32ShrU]);
  indexed(out, op.localGet, address);
  out.write([op.i32Const, chunkShift, op.i32ShrU]);
  indexed(out, op.localTee, address);
  out.write([op.i32Sub]);
  indexed(out, op.localTee, length);
  // `62` fits one byte of signed LEB128.
  out.write([op.i32Const, 62, op.i32GtU, op.if, emptyBlock, op.i64Const, 0x7f]);
  indexed(out, op.globalSet, written);
  out.write([op.return, op.end]);
  // written |= rotl((2 << chunks) - 1, first)
  indexed(out, op.globalGet, written);
  out.write([op.i64Const, 2]);
  indexed(out, op.localGet, length);
  out.write([op.i64ExtendU, op.i64Shl, op.i64Const, 1, op.i64Sub]);
  indexed(out, op.localGet, address);
  out.write([op.i64ExtendU, op.i64Rotl, op.i64Or]);
  indexed(out, op.globalSet, written);
  out.write([op.end]);
}
