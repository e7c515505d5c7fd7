/** The immediates of an instruction. */
type Immediate =
  | "none"
  | "block"
  | "label"
  | "labels"
  | "function"
  | "indirect"
  | "local"
  | "global"
  | "access"
  | "memory"
  | "i32"
  | "i64"
  | "f32"
  | "f64"
  | "select"
  | "memories";

/** One instruction: its immediates, the operands it pops and pushes, and its price in fuel. */
export interface Opcode {
  readonly immediate: Immediate;
  readonly pops: number;
  readonly pushes: number;
  readonly cost: number;
  /** The largest alignment, as a power of two. */
  readonly width: number;
}

export const op = {
  unreachable: 0x00,
  block: 0x02,
  loop: 0x03,
  if: 0x04,
  else: 0x05,
  end: 0x0b,
  br: 0x0c,
  brIf: 0x0d,
  brTable: 0x0e,
  return: 0x0f,
  call: 0x10,
  callIndirect: 0x11,
  select: 0x1b,
  localGet: 0x20,
  localSet: 0x21,
  localTee: 0x22,
  globalGet: 0x23,
  globalSet: 0x24,
  i32Store: 0x36,
  memorySize: 0x3f,
  memoryGrow: 0x40,
  i32Const: 0x41,
  i64Const: 0x42,
  i32Eqz: 0x45,
  i32Eq: 0x46,
  i32LtS: 0x48,
  i32GtU: 0x4b,
  i64LtS: 0x53,
  i32Add: 0x6a,
  i32Sub: 0x6b,
  i32ShrU: 0x76,
  i64Sub: 0x7d,
  i64Mul: 0x7e,
  i64Or: 0x84,
  i64Shl: 0x86,
  i64ShrU: 0x88,
  i64Rotl: 0x89,
  i64ExtendU: 0xad,
  prefix: 0xfc,
} as const;

/** `memory.copy` and `memory.fill`, after the prefix. Segments that could be dropped would be state between calls. */
export const bulk = { copy: 10, fill: 11, lastConversion: 7 } as const;

const table = new Map<number, Opcode>();

function add(codes: readonly number[], immediate: Immediate, pops: number, pushes: number, cost = 1, width = 0): void {
  for (const code of codes) table.set(code, { immediate, pops, pushes, cost, width });
}

function range(first: number, last: number): number[] {
  return Array.from({ length: last - first + 1 }, (_, index) => first + index);
}

add([0x00, 0x01], "none", 0, 0);
add([0x02, 0x03], "block", 0, 0);
add([0x04], "block", 1, 0);
add([0x05, 0x0b], "none", 0, 0, 0);
add([0x0c], "label", 0, 0);
add([0x0d], "label", 1, 0);
add([0x0e], "labels", 1, 0, 3);
add([0x0f], "none", 0, 0);
add([0x10], "function", 0, 0, 8);
// Priced like the most expensive target: a table can hold host functions.
add([0x11], "indirect", 1, 0, 200);
add([0x1a], "none", 1, 0);
add([0x1b], "none", 3, 1);
add([0x1c], "select", 3, 1);
add([0x20], "local", 0, 1);
add([0x21], "local", 1, 0);
add([0x22], "local", 1, 1);
add([0x23], "global", 0, 1);
add([0x24], "global", 1, 0);
for (const [code, width] of [2, 3, 2, 3, 0, 0, 1, 1, 0, 0, 1, 1, 2, 2].entries())
  add([0x28 + code], "access", 1, 1, 2, width);
for (const [code, width] of [2, 3, 2, 3, 0, 1, 0, 1, 2].entries()) add([0x36 + code], "access", 2, 0, 2, width);
add([0x3f], "memory", 0, 1);
add([0x40], "memory", 1, 1, 1_000);
add([0x41], "i32", 0, 1);
add([0x42], "i64", 0, 1);
add([0x43], "f32", 0, 1);
add([0x44], "f64", 0, 1);
add([0x45, 0x50], "none", 1, 1);
add([...range(0x46, 0x4f), ...range(0x51, 0x66)], "none", 2, 1);
add(range(0x67, 0x69), "none", 1, 1);
add([...range(0x6a, 0x6c), ...range(0x71, 0x78)], "none", 2, 1);
add(range(0x6d, 0x70), "none", 2, 1, 12);
add(range(0x79, 0x7b), "none", 1, 1);
add([...range(0x7c, 0x7e), ...range(0x83, 0x8a)], "none", 2, 1);
add(range(0x7f, 0x82), "none", 2, 1, 24);
for (const first of [0x8b, 0x99]) {
  add(range(first, first + 5), "none", 1, 1, 3);
  add([first + 6], "none", 1, 1, 12);
  add(range(first + 7, first + 9), "none", 2, 1, 2);
  add([first + 10], "none", 2, 1, 12);
  add(range(first + 11, first + 13), "none", 2, 1, 3);
}
add(range(0xa7, 0xbf), "none", 1, 1, 2);
add(range(0xc0, 0xc4), "none", 1, 1);

/** Returns the instruction of a one-byte code; undefined for unknown ones. */
export function opcodeOf(code: number): Opcode | undefined {
  return table.get(code);
}

const conversion: Opcode = { immediate: "none", pops: 1, pushes: 1, cost: 4, width: 0 };
const copy: Opcode = { immediate: "memories", pops: 3, pushes: 0, cost: 16, width: 0 };
// Processors are slowest at filling nothing.
const fill: Opcode = { ...copy, immediate: "memory", cost: 256 };

/** Returns the instruction of a code after the prefix 0xfc: saturating conversions, `memory.copy`, `memory.fill`. */
export function prefixedOpcodeOf(code: number): Opcode | undefined {
  if (code <= bulk.lastConversion) return conversion;
  if (code === bulk.copy) return copy;
  return code === bulk.fill ? fill : undefined;
}
