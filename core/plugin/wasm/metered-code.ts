import type { BinaryWriter } from "./binary.ts";
import { op } from "./opcode.ts";

/** Indices of what only injected code uses; they follow the module's own. */
export interface MeterGlobals {
  /** i64; negative once the fuel is spent. */
  readonly fuel: number;
  /** i32; bytes of call stack left, negative where calls are too deep. */
  readonly stack: number;
  /** i32; 1 once the memory was refused to grow. */
  readonly refused: number;
  /** i32; the size of the memory as the module sees it. */
  readonly pages: number;
  /** i32; 0 until an entry returned, 1 where it returned 0 or nothing, 2 where it returned another number. */
  readonly ended: number;
  /** i64; the chunks of the memory that may have been written to (`write-mark.ts`). */
  readonly written: number;
  /** The function that grows the memory. */
  readonly grow: number;
  /** The function that marks a range of the memory as written. */
  readonly mark: number;
}

export const emptyBlock = 0x40;

/** Deducts a constant from the fuel and traps where none is left. Returns the constant's position. */
export function chargeFuel(writer: BinaryWriter, { fuel }: MeterGlobals): number {
  indexed(writer, op.globalGet, fuel);
  writer.write([op.i64Const]);
  const place = writer.reserve();
  writer.write([op.i64Sub]);
  indexed(writer, op.globalSet, fuel);
  trapWithoutFuel(writer, fuel);
  return place;
}

/** Deducts `(n >> shift) * price` from the fuel, n being the unsigned i32 on top of the stack, which stays there. */
export function chargeByLength(
  writer: BinaryWriter,
  { fuel }: MeterGlobals,
  scratch: number,
  { shift, price }: { readonly shift: number; readonly price: number },
): void {
  indexed(writer, op.localSet, scratch);
  indexed(writer, op.globalGet, fuel);
  indexed(writer, op.localGet, scratch);
  writer.write([op.i64ExtendU, op.i64Const, shift, op.i64ShrU, op.i64Const]);
  writer.fill(writer.reserve(), price);
  writer.write([op.i64Mul, op.i64Sub]);
  indexed(writer, op.globalSet, fuel);
  trapWithoutFuel(writer, fuel);
  indexed(writer, op.localGet, scratch);
}

/** Deducts a frame from the call stack and traps where none is left. Returns the position of the frame's size. */
export function enterFrame(writer: BinaryWriter, { stack }: MeterGlobals): number {
  const place = moveStack(writer, stack, op.i32Sub);
  indexed(writer, op.globalGet, stack);
  writer.write([op.i32Const, 0, op.i32LtS, op.if, emptyBlock, op.unreachable, op.end]);
  return place;
}

/** Returns the frame. Nothing else returns from a call: a trap ends all of them. */
export function leaveFrame(writer: BinaryWriter, { stack }: MeterGlobals): number {
  return moveStack(writer, stack, op.i32Add);
}

function trapWithoutFuel(writer: BinaryWriter, fuel: number): void {
  indexed(writer, op.globalGet, fuel);
  writer.write([op.i64Const, 0, op.i64LtS, op.if, emptyBlock, op.unreachable, op.end]);
}

function moveStack(writer: BinaryWriter, stack: number, operation: number): number {
  indexed(writer, op.globalGet, stack);
  writer.write([op.i32Const]);
  const place = writer.reserve();
  writer.write([operation]);
  indexed(writer, op.globalSet, stack);
  return place;
}

/** Writes an instruction about one global or one local. */
export function indexed(writer: BinaryWriter, operation: number, index: number): void {
  writer.write([operation]);
  writer.u32(index);
}
