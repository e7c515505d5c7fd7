import type { BinaryReader } from "./binary-reader.ts";
import { readIndex, readValueType } from "./module.ts";
import type { Opcode } from "./opcode.ts";

/** How many of each thing an instruction may name where it stands. */
export interface Scope {
  readonly labels: number;
  readonly locals: number;
  readonly globals: number;
}

const mostLabels = 4_096;

const none: readonly number[] = [];

/**
 * Reads what follows an instruction's code, and answers with the labels it names. Throws ModuleFault where it names what
 * is not there.
 */
export function readImmediate(code: BinaryReader, opcode: Opcode, scope: Scope): readonly number[] {
  if (opcode.immediate === "label") return [readIndex(code, scope.labels, "a label")];
  if (opcode.immediate === "labels") return readLabels(code, scope.labels);
  skipImmediate(code, opcode, scope);
  return none;
}

function skipImmediate(code: BinaryReader, { immediate, width }: Opcode, scope: Scope): void {
  if (immediate === "local") readIndex(code, scope.locals, "a local");
  else if (immediate === "global") readIndex(code, scope.globals, "a global");
  else if (immediate === "access") skipAccess(code, width);
  else if (immediate === "memory") code.expect(0x00, "memory 0");
  else if (immediate === "memories") for (const _ of "12") code.expect(0x00, "memory 0");
  else if (immediate === "i32") code.signed(32);
  else if (immediate === "i64") code.signed(64);
  else if (immediate === "f32") code.take(4);
  else if (immediate === "f64") code.take(8);
  else if (immediate === "select") {
    code.expect(1, "one type");
    readValueType(code);
  }
}

/** The labels of a table, the default last. */
function readLabels(code: BinaryReader, labels: number): readonly number[] {
  const count = code.count("labels", mostLabels);
  return Array.from({ length: count + 1 }, () => readIndex(code, labels, "a label"));
}

function skipAccess(code: BinaryReader, width: number): void {
  const alignment = code.u32();
  if (alignment > width) throw code.fault(`an alignment of at most ${width}`, String(alignment));
  code.u32();
}
