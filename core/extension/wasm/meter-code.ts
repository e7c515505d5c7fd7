import type { BinaryWriter } from "./binary-writer.ts";
import { op } from "./opcode.ts";

/** Indices of the globals that only injected code knows: they come after the module's own. */
export interface MeterGlobals {
  /** i64; below 0 the fuel is gone. */
  readonly fuel: number;
  /** i32; bytes of call stack left, below 0 the calls are too deep. */
  readonly stack: number;
  /** i32; 1 once the memory was refused more pages. */
  readonly refused: number;
}

const emptyBlock = 0x40;

/** Takes a constant from the fuel and traps where none is left. Answers with the place of the constant. */
export function chargeFuel(writer: BinaryWriter, { fuel }: MeterGlobals): number {
  global(writer, op.globalGet, fuel);
  writer.write([op.i64Const]);
  const place = writer.reserve();
  writer.write([op.i64Sub]);
  global(writer, op.globalSet, fuel);
  trapWithoutFuel(writer, fuel);
  return place;
}

/** Takes `(n >> shift) * price` from the fuel, n being the unsigned i32 on top of the stack, which stays there. */
export function chargeByLength(
  writer: BinaryWriter,
  { fuel }: MeterGlobals,
  scratch: number,
  { shift, price }: { readonly shift: number; readonly price: number },
): void {
  local(writer, op.localSet, scratch);
  global(writer, op.globalGet, fuel);
  local(writer, op.localGet, scratch);
  writer.write([op.i64ExtendU, op.i64Const, shift, op.i64ShrU, op.i64Const]);
  writer.fill(writer.reserve(), price);
  writer.write([op.i64Mul, op.i64Sub]);
  global(writer, op.globalSet, fuel);
  trapWithoutFuel(writer, fuel);
  local(writer, op.localGet, scratch);
}

/** Takes a frame from the call stack and traps where none is left. Answers with the place of the frame's size. */
export function enterFrame(writer: BinaryWriter, { stack }: MeterGlobals): number {
  const place = moveStack(writer, stack, op.i32Sub);
  global(writer, op.globalGet, stack);
  writer.write([op.i32Const, 0, op.i32LtS, op.if, emptyBlock, op.unreachable, op.end]);
  return place;
}

/** Gives the frame back. Nothing else returns from a call: a trap ends them all. */
export function leaveFrame(writer: BinaryWriter, { stack }: MeterGlobals): number {
  return moveStack(writer, stack, op.i32Add);
}

/** Notes that the memory did not grow. Leaves what `memory.grow` answered on the stack. */
export function noteRefusal(writer: BinaryWriter, { refused }: MeterGlobals, scratch: number): void {
  local(writer, op.localTee, scratch);
  writer.write([op.i32Const, 0x7f, op.i32Eq, op.if, emptyBlock, op.i32Const, 1]);
  global(writer, op.globalSet, refused);
  writer.write([op.end]);
  local(writer, op.localGet, scratch);
}

function trapWithoutFuel(writer: BinaryWriter, fuel: number): void {
  global(writer, op.globalGet, fuel);
  writer.write([op.i64Const, 0, op.i64LtS, op.if, emptyBlock, op.unreachable, op.end]);
}

function moveStack(writer: BinaryWriter, stack: number, operation: number): number {
  global(writer, op.globalGet, stack);
  writer.write([op.i32Const]);
  const place = writer.reserve();
  writer.write([operation]);
  global(writer, op.globalSet, stack);
  return place;
}

function global(writer: BinaryWriter, operation: number, index: number): void {
  writer.write([operation]);
  writer.u32(index);
}

function local(writer: BinaryWriter, operation: number, index: number): void {
  writer.write([operation]);
  writer.u32(index);
}
