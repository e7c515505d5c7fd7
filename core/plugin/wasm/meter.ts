import { initializer, settingsCheck } from "../abi.ts";
import { BinaryWriter, checkBound, ModuleFault } from "./binary.ts";
import { BodyMeter, type MeterGlobals, type Origin } from "./body-meter.ts";
import { type ModuleGlobal, type ParsedModule, valueTypes } from "./module.ts";
import { op } from "./opcode.ts";

/** A metered module, and the exports that the host uses. */
export interface MeteredModule {
  readonly bytes: Uint8Array;
  /** Exports of the module's mutable globals. */
  readonly state: readonly string[];
  /** Exports to run once, in this order, before the first call. */
  readonly initializers: readonly string[];
  /** True where it exports `validate_settings`. */
  readonly checksSettings: boolean;
}

/** The exports that the host reads. The module's own exports are dropped, so none can shadow them. */
export const hostExports = { memory: "memory", fuel: "fuel", stack: "stack", refused: "refused" } as const;

/** Bytes of call stack by the computed frame sizes; the engine has about 980,000. */
export const stackBytes = 262_144;

/**
 * Rewrites a parsed module: each function metered, the memory's maximum at most `memoryPages`, the table fixed, the
 * start function an export that the host calls with fuel, and the meter's globals after those that the module can name.
 * Fills `origins`, where given, with every instruction in order.
 */
export function meterModule(module: ParsedModule, memoryPages: number, origins?: Origin[]): MeteredModule {
  const own = module.globals.length;
  const globals: MeterGlobals = { fuel: own, stack: own + 1, refused: own + 2 };
  const writer = new BinaryWriter();
  writer.write([0x00, 0x61, 0x73, 0x6d, 0x01, 0x00, 0x00, 0x00]);
  writer.section(1, typeSection(module));
  writer.section(2, importSection(module));
  writer.section(3, functionSection(module));
  if (module.tableSize !== undefined) writer.section(4, tableSection(module.tableSize));
  if (module.memory !== undefined) writer.section(5, memorySection(module.memory, memoryPages));
  writer.section(6, globalSection(module.globals));
  const initializers = module.start === undefined ? [] : ["start"];
  if (module.entries.has(initializer)) initializers.push(initializer);
  writer.section(7, exportSection(module, globals));
  if (module.elements.length > 0) writer.section(9, raw(module.elements));
  const code = codeSection(module, globals, origins);
  writer.section(10, code);
  shift(origins, 0, writer.length - code.length);
  if (module.data.length > 0) writer.section(11, raw(module.data));
  const state = stateOf(module.globals).map(([name]) => name);
  const checksSettings = module.entries.has(settingsCheck);
  return { bytes: writer.bytes.slice(), state, initializers, checksSettings };
}

function raw(bytes: Uint8Array): BinaryWriter {
  const writer = new BinaryWriter();
  writer.write(bytes);
  return writer;
}

function typeSection({ types }: ParsedModule): BinaryWriter {
  const writer = new BinaryWriter();
  writer.u32(types.length);
  for (const { params, results } of types) {
    writer.write([0x60]);
    writer.sized(Uint8Array.from(params));
    writer.sized(Uint8Array.from(results));
  }
  return writer;
}

function importSection({ imports }: ParsedModule): BinaryWriter {
  const writer = new BinaryWriter();
  writer.u32(imports.length);
  for (const { name, type } of imports) {
    writer.name("host");
    writer.name(name);
    writer.write([0x00]);
    writer.u32(type);
  }
  return writer;
}

function functionSection({ functions, imports }: ParsedModule): BinaryWriter {
  const writer = new BinaryWriter();
  writer.u32(functions.length - imports.length);
  for (const type of functions.slice(imports.length)) writer.u32(type);
  return writer;
}

function tableSection(size: number): BinaryWriter {
  const writer = new BinaryWriter();
  writer.write([1, 0x70, 0x01]);
  writer.u32(size);
  writer.u32(size);
  return writer;
}

function memorySection({ min, max }: NonNullable<ParsedModule["memory"]>, cap: number): BinaryWriter {
  checkBound("pages of memory", min, cap);
  if (max !== undefined && max < min) throw new ModuleFault(`expected at least ${min} pages at most, got ${max}`);
  const writer = new BinaryWriter();
  writer.write([1, 0x01]);
  writer.u32(min);
  writer.u32(Math.min(cap, max ?? cap));
  return writer;
}

function globalSection(globals: readonly ModuleGlobal[]): BinaryWriter {
  const writer = new BinaryWriter();
  writer.u32(globals.length + 3);
  for (const { type, mutable, init } of globals) {
    writer.write([type, mutable ? 1 : 0]);
    writer.write(init);
  }
  writer.write([valueTypes.i64, 1, op.i64Const, 0, op.end]);
  for (const _ of ["stack", "refused"]) writer.write([valueTypes.i32, 1, op.i32Const, 0, op.end]);
  return writer;
}

function stateOf(globals: readonly ModuleGlobal[]): readonly (readonly [string, number])[] {
  return globals.flatMap(({ mutable }, index) => (mutable ? [[`global ${index}`, index] as const] : []));
}

function exportSection(module: ParsedModule, globals: MeterGlobals): BinaryWriter {
  const functions = [...module.entries];
  if (module.start !== undefined) functions.push(["start", module.start]);
  const rows = [
    ...functions.map(([name, index]) => ({ name, kind: 0, index })),
    ...(module.memory === undefined ? [] : [{ name: hostExports.memory, kind: 2, index: 0 }]),
    ...stateOf(module.globals).map(([name, index]) => ({ name, kind: 3, index })),
    ...(["fuel", "stack", "refused"] as const).map((name) => ({
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

function codeSection(module: ParsedModule, globals: MeterGlobals, origins: Origin[] | undefined): BinaryWriter {
  const writer = new BinaryWriter();
  writer.u32(module.bodies.length);
  for (const [index, body] of module.bodies.entries()) {
    const type = module.types[module.functions[module.imports.length + index] ?? -1];
    if (type === undefined) throw new TypeError("meterModule: expected a parsed module");
    const first = origins?.length ?? 0;
    const meter = new BodyMeter(module, body, type, globals, origins);
    writer.sized(meter.meter());
    shift(origins, first, writer.length - meter.codeLength);
  }
  return writer;
}

/** Offsets within a part become offsets within the whole. */
function shift(origins: Origin[] | undefined, first: number, by: number): void {
  for (const origin of origins?.slice(first) ?? []) origin.metered += by;
}
