import { abiModule, command, initializer, isNetworkFunction, settingsCheck } from "../abi.ts";
import { wasiModule } from "../wasi.ts";
import { BinaryWriter, checkBound, ModuleFault } from "./binary.ts";
import { BodyMeter, type Origin } from "./body-meter.ts";
import { emptyBlock, indexed, type MeterGlobals } from "./metered-code.ts";
import { type ModuleGlobal, type ParsedModule, valueTypes } from "./module.ts";
import { op } from "./opcode.ts";
import { writeMarkFunction } from "./write-mark.ts";

/** A metered module, and the exports that the host uses. */
export interface MeteredModule {
  readonly bytes: Uint8Array;
  /** Exports of the module's mutable globals, and of the size of its memory. */
  readonly state: readonly string[];
  /** Exports to run once, in this order, before the first call. */
  readonly initializers: readonly string[];
  /** True where it exports `validate_settings`. */
  readonly checksSettings: boolean;
  /** The most pages of its memory. */
  readonly maxPages: number;
  /** The pages by which its memory may grow in a call before that costs a new instance. */
  readonly growthPages: number;
  /** The length of the metered module up to the functions that the meter adds. */
  readonly ownBytes: number;
}

/** The exports that the host reads. Of the module's own only those of its form are kept, so none can shadow them. */
export const hostExports = {
  ...{ memory: "memory", fuel: "fuel", stack: "stack", refused: "refused", pages: "pages", ended: "ended" },
  ...{ written: "written", mark: "mark" },
  storeByte: "store_u8",
} as const;

/**
 * The namespace under which a metered module imports WASI and the network: under their own names, the engine could bring
 * what it has.
 */
export const closedNamespace = "gateway:closed";
/** The names of exports: the engine would run some by itself, without fuel. */
const exportNames: Readonly<Record<string, string>> = { [initializer]: "initialize", [command]: "command" };
/** Zeroing these pages after each call takes less than a tenth of what a new instance does. */
const growthPages = 4;

/** Bytes of call stack by the computed frame sizes; the engine has about 980,000. */
export const stackBytes = 262_144;

/**
 * Rewrites a parsed module: each function metered, the memory's maximum at most `memoryPages` and its size a number
 * that begins each call as it was, the table fixed, the start function and the entries exports that the host calls with
 * fuel, and the meter's globals and functions after those that the module can name. Fills `origins`, where given, with
 * every instruction in order.
 */
export function meterModule(module: ParsedModule, memoryPages: number, origins?: Origin[]): MeteredModule {
  const globals = globalsAfter(module);
  const entries = entriesOf(module);
  const limits = module.memory && limitsOf(module.memory, memoryPages);
  const writer = new BinaryWriter();
  writer.write([0x00, 0x61, 0x73, 0x6d, 0x01, 0x00, 0x00, 0x00]);
  writer.section(1, typeSection(module));
  writer.section(2, importSection(module));
  writer.section(3, functionSection(module, entries.length, limits !== undefined));
  if (module.tableSize !== undefined) writer.section(4, tableSection(module.tableSize));
  if (limits !== undefined) writer.section(5, memorySection(limits));
  writer.section(6, globalSection(module));
  writer.section(7, exportSection(module, globals, entries));
  if (module.elements.length > 0) writer.section(9, raw(module.elements));
  const { code, grows } = codeSection(module, globals, origins);
  const ownLength = code.length;
  for (const { index, answers } of entries) code.sized(bodyOf((body) => writeEntry(body, globals, index, answers)));
  if (limits !== undefined) {
    code.sized(bodyOf((body) => writeGrow(body, globals, limits.max)));
    code.sized(bodyOf((body) => writeMarkFunction(body, globals)));
  }
  writer.section(10, code);
  shift(origins, 0, writer.length - code.length);
  const ownBytes = writer.length - code.length + ownLength;
  if (module.data.length > 0) writer.section(11, raw(module.data));
  return {
    bytes: writer.bytes.slice(),
    state: [...stateOf(module.globals).map(([name]) => name), hostExports.pages],
    initializers: entries.flatMap(({ name, isInitializer }) => (isInitializer ? [name] : [])),
    checksSettings: module.entries.has(settingsCheck),
    maxPages: limits?.max ?? 0,
    growthPages: grows ? growthPages : 0,
    ownBytes,
  };
}

function globalsAfter({ globals: { length }, functions, entries, start, imports }: ParsedModule): MeterGlobals {
  const at = { fuel: length, stack: length + 1, refused: length + 2, pages: length + 3, ended: length + 4 };
  const grow = functions.length + entriesOf({ entries, start, imports }).length;
  return { ...at, written: length + 5, grow, mark: grow + 1 };
}

/** A function that the host calls: the index of the module's own, and whether it returns a number. */
interface Entry {
  readonly name: string;
  readonly index: number;
  readonly answers: boolean;
  readonly isInitializer: boolean;
}

/** The entries in order: what begins the module first. */
function entriesOf({ entries, start, imports }: Pick<ParsedModule, "entries" | "start" | "imports">): readonly Entry[] {
  const list: Entry[] =
    start === undefined ? [] : [{ name: "start", index: start, answers: false, isInitializer: true }];
  const runsCommand = !entries.has(initializer) && !imports.some(({ module }) => module === wasiModule);
  for (const [name, index] of entries) {
    const isInitializer = name === initializer || name === command;
    if (name === command && !runsCommand) continue;
    list.push({ name: exportNames[name] ?? name, index, answers: !isInitializer, isInitializer });
  }
  return list;
}

/** A function without locals. */
function bodyOf(write: (body: BinaryWriter) => void): Uint8Array {
  const body = new BinaryWriter();
  body.write([0]);
  write(body);
  return body.bytes;
}

/** Writes the code of `memory.grow`: moves the size that the module sees, and the memory itself where that is too small. */
function writeGrow(writer: BinaryWriter, { refused, pages }: MeterGlobals, maxPages: number): void {
  const [amount, minusOne] = [0, 0x7f];
  indexed(writer, op.localGet, amount);
  writer.write([op.i32Const]);
  writer.fill(writer.reserve(), maxPages);
  indexed(writer, op.globalGet, pages);
  writer.write([op.i32Sub, op.i32GtU, op.if, emptyBlock, op.i32Const, 1]);
  indexed(writer, op.globalSet, refused);
  writer.write([op.i32Const, minusOne, op.return, op.end]);
  indexed(writer, op.globalGet, pages);
  indexed(writer, op.localGet, amount);
  writer.write([op.i32Add]);
  indexed(writer, op.localTee, amount);
  writer.write([op.memorySize, 0, op.i32GtU, op.if, emptyBlock]);
  indexed(writer, op.localGet, amount);
  writer.write([op.memorySize, 0, op.i32Sub, op.memoryGrow, 0, op.i32Const, minusOne, op.i32Eq]);
  writer.write([op.if, emptyBlock, op.unreachable, op.end, op.end]);
  indexed(writer, op.globalGet, pages);
  indexed(writer, op.localGet, amount);
  indexed(writer, op.globalSet, pages);
  writer.write([op.end]);
}

/** Writes the code of an entry: calls the module's own function and records how it returned. */
function writeEntry(writer: BinaryWriter, { ended }: MeterGlobals, index: number, answers: boolean): void {
  writer.write(answers ? [op.i32Const, 1, op.i32Const, 2] : [op.i32Const, 1]);
  indexed(writer, op.call, index);
  if (answers) writer.write([op.i32Eqz, op.select]);
  indexed(writer, op.globalSet, ended);
  writer.write([op.end]);
}

function raw(bytes: Uint8Array): BinaryWriter {
  const writer = new BinaryWriter();
  writer.write(bytes);
  return writer;
}

/** The types of entries and of the functions that grow the memory and mark a range of it, after the module's own. */
const addedTypes = [
  { params: [], results: [] },
  { params: [valueTypes.i32], results: [valueTypes.i32] },
  { params: [valueTypes.i32, valueTypes.i32], results: [] },
];

function typeSection({ types }: ParsedModule): BinaryWriter {
  const writer = new BinaryWriter();
  writer.u32(types.length + addedTypes.length);
  for (const { params, results } of [...types, ...addedTypes]) {
    writer.write([0x60]);
    writer.sized(Uint8Array.from(params));
    writer.sized(Uint8Array.from(results));
  }
  return writer;
}

function importSection({ imports }: ParsedModule): BinaryWriter {
  const writer = new BinaryWriter();
  writer.u32(imports.length);
  for (const { module, name, type } of imports) {
    writer.name(module === wasiModule || isNetworkFunction(module, name) ? closedNamespace : module);
    writer.name(name);
    writer.write([0x00]);
    writer.u32(type);
  }
  return writer;
}

function functionSection(
  { functions, imports, types }: ParsedModule,
  entries: number,
  hasMemory: boolean,
): BinaryWriter {
  const writer = new BinaryWriter();
  writer.u32(functions.length - imports.length + entries + (hasMemory ? 2 : 0));
  for (const type of functions.slice(imports.length)) writer.u32(type);
  for (let entry = 0; entry < entries; entry++) writer.u32(types.length);
  if (!hasMemory) return writer;
  for (const type of [types.length + 1, types.length + 2]) writer.u32(type);
  return writer;
}

function tableSection(size: number): BinaryWriter {
  const writer = new BinaryWriter();
  writer.write([1, 0x70, 0x01]);
  writer.u32(size);
  writer.u32(size);
  return writer;
}

interface MemoryLimits {
  readonly min: number;
  readonly max: number;
}

function limitsOf({ min, max }: NonNullable<ParsedModule["memory"]>, cap: number): MemoryLimits {
  checkBound("pages of memory", min, cap);
  if (max !== undefined && max < min) throw new ModuleFault(`expected at least ${min} pages at most, got ${max}`);
  return { min, max: Math.min(cap, max ?? cap) };
}

function memorySection({ min, max }: MemoryLimits): BinaryWriter {
  const writer = new BinaryWriter();
  writer.write([1, 0x01]);
  writer.u32(min);
  writer.u32(max);
  return writer;
}

function globalSection({ globals, memory }: ParsedModule): BinaryWriter {
  const writer = new BinaryWriter();
  writer.u32(globals.length + 6);
  for (const { type, mutable, init } of globals) {
    writer.write([type, mutable ? 1 : 0]);
    writer.write(init);
  }
  writer.write([valueTypes.i64, 1, op.i64Const, 0, op.end]);
  for (const value of [0, 0, memory?.min ?? 0, 0]) {
    writer.write([valueTypes.i32, 1, op.i32Const]);
    writer.fill(writer.reserve(), value);
    writer.write([op.end]);
  }
  writer.write([valueTypes.i64, 1, op.i64Const, 0, op.end]);
  return writer;
}

function stateOf(globals: readonly ModuleGlobal[]): readonly (readonly [string, number])[] {
  return globals.flatMap(({ mutable }, index) => (mutable ? [[`global ${index}`, index] as const] : []));
}

function exportSection(module: ParsedModule, globals: MeterGlobals, entries: readonly Entry[]): BinaryWriter {
  const storeByte = module.imports.findIndex(
    (each) => each.module === abiModule && each.name === hostExports.storeByte,
  );
  const rows = [
    ...entries.map(({ name }, index) => ({ name, kind: 0, index: module.functions.length + index })),
    ...(storeByte === -1 ? [] : [{ name: hostExports.storeByte, kind: 0, index: storeByte }]),
    ...(module.memory === undefined ? [] : [{ name: hostExports.memory, kind: 2, index: 0 }]),
    ...stateOf(module.globals).map(([name, index]) => ({ name, kind: 3, index })),
    ...module.exports,
    ...(module.memory === undefined ? [] : [{ name: hostExports.mark, kind: 0, index: globals.mark }]),
    ...(["fuel", "stack", "refused", "pages", "ended", "written"] as const).map((name) => ({
      name: hostExports[name],
      kind: 3,
      index: globals[name],
    })),
  ];
  const writer = new BinaryWriter();
  writer.u32(rows.length);
  for (const { name, kind, index } of rows) {
    writer.name(name);
    writer.write([kind]);
    writer.u32(index);
  }
  return writer;
}

interface MeteredCode {
  readonly code: BinaryWriter;
  /** True where an instruction grows the memory. */
  readonly grows: boolean;
}

function codeSection(module: ParsedModule, globals: MeterGlobals, origins: Origin[] | undefined): MeteredCode {
  let grows = false;
  const writer = new BinaryWriter();
  writer.u32(globals.grow + (module.memory === undefined ? 0 : 2) - module.imports.length);
  for (const [index, body] of module.bodies.entries()) {
    const type = module.types[module.functions[module.imports.length + index] ?? -1];
    if (type === undefined) throw new TypeError("meterModule: expected a parsed module");
    const first = origins?.length ?? 0;
    const meter = new BodyMeter(module, body, type, globals, origins);
    writer.sized(meter.meter());
    grows ||= meter.grows;
    shift(origins, first, writer.length - meter.codeLength);
  }
  return { code: writer, grows };
}

/** Offsets within a part become offsets within the whole. */
function shift(origins: Origin[] | undefined, first: number, by: number): void {
  for (const origin of origins?.slice(first) ?? []) origin.metered += by;
}
