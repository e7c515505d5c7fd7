import type { HostSignature } from "../abi.ts";
import { type BinaryReader, checkBound, hex, ModuleFault } from "./binary.ts";

export const valueTypes = { i32: 0x7f, i64: 0x7e, f32: 0x7d, f64: 0x7c } as const;

export interface FunctionType {
  readonly params: readonly number[];
  readonly results: readonly number[];
}

export interface ModuleGlobal {
  readonly type: number;
  readonly mutable: boolean;
  /** The constant expression, its `end` included. */
  readonly init: Uint8Array;
}

/** A function's body before it is metered: its groups of locals, and its code with the closing `end`. */
export interface Body {
  readonly locals: Uint8Array;
  readonly localGroups: number;
  readonly localCount: number;
  readonly code: BinaryReader;
}

/** An imported function. */
export interface ModuleImport {
  readonly module: string;
  readonly name: string;
  readonly type: number;
}

/** An export that keeps its name: 0 is a function, 3 a global. */
export interface ModuleExport {
  readonly name: string;
  readonly kind: 0 | 3;
  readonly index: number;
}

/** The imports and exports of modules of one interface. */
export interface ModuleForm {
  /** Returns a function that they may import; undefined for an unknown one. */
  readonly importOf: (module: string, name: string) => HostSignature | undefined;
  /** The import that stands for the module's own memory, which it then does not define. */
  readonly memoryImport?: { readonly module: string; readonly name: string };
  /** Exports without parameters that the host runs through a function of the meter. */
  readonly entries: readonly string[];
  /** Exports that each module has and that keep their names, none of which is one of `hostExports`. */
  readonly functions: Readonly<Record<string, HostSignature>>;
  readonly globals: readonly string[];
  /** Throws ModuleFault for a whole module that is not of this interface. */
  readonly check: (module: ParsedModule) => void;
}

/** A parsed module; anything else in the binary was refused or dropped. */
export interface ParsedModule {
  readonly types: readonly FunctionType[];
  readonly imports: readonly ModuleImport[];
  /** Type index by function index: imported functions first, then defined ones. */
  readonly functions: readonly number[];
  readonly tableSize: number | undefined;
  readonly memory: { readonly min: number; readonly max: number | undefined } | undefined;
  readonly globals: readonly ModuleGlobal[];
  /** Function index by name, for the entries of its form. */
  readonly entries: ReadonlyMap<string, number>;
  readonly exports: readonly ModuleExport[];
  /** True where it exports what the JavaScript PDK puts into each of its modules. */
  readonly isScript: boolean;
  readonly start: number | undefined;
  readonly elements: Uint8Array;
  readonly data: Uint8Array;
  readonly bodies: readonly Body[];
}

export const pageBytes = 65_536;

const most = {
  types: 1_024,
  values: 64,
  imports: 128,
  functions: 16_384,
  table: 10_000,
  globals: 1_024,
  exports: 1_024,
  segments: 10_000,
  locals: 1_024,
  bodyBytes: 131_072,
} as const;

export function readTypes(reader: BinaryReader): FunctionType[] {
  return readList(reader, "types", most.types, () => {
    reader.expect(0x60, "a function type");
    return { params: readValueTypes(reader), results: readValueTypes(reader) };
  });
}

function readValueTypes(reader: BinaryReader): number[] {
  return readList(reader, "values in a function type", most.values, () => readValueType(reader));
}

export function readValueType(reader: BinaryReader): number {
  const type = reader.byte();
  if (!Object.values<number>(valueTypes).includes(type)) throw reader.fault("i32, i64, f32 or f64", hex(type));
  return type;
}

/** Allows functions of the form only, with their types: the engine would convert other declarations. */
export function readImports(
  reader: BinaryReader,
  types: readonly FunctionType[],
  form: ModuleForm,
): Pick<ParsedModule, "imports" | "memory"> {
  const imports: ModuleImport[] = [];
  let memory: ParsedModule["memory"];
  readList(reader, "imports", most.imports, () => {
    const module = reader.name();
    const name = reader.name();
    if (module === form.memoryImport?.module && name === form.memoryImport.name) {
      reader.expect(0x02, "a memory import");
      if (memory !== undefined) throw reader.fault("one memory", "another");
      memory = readLimits(reader);
      return;
    }
    const known = form.importOf(module, name);
    if (known === undefined) throw new ModuleFault(`expected imports of the ABI, got \`${module}\` \`${name}\``);
    reader.expect(0x00, "a function import");
    const type = reader.u32();
    if (!isOfType(types[type], known))
      throw new ModuleFault(`expected the import \`${name}\` to have its type of the ABI`);
    imports.push({ module, name, type });
  });
  return { imports, memory };
}

export function isOfType(declared: FunctionType | undefined, known: HostSignature): boolean {
  return (
    declared !== undefined &&
    sameTypes(declared.params, known.params.map(codeOf)) &&
    sameTypes(declared.results, known.results.map(codeOf))
  );
}

function codeOf(name: "i32" | "i64"): number {
  return valueTypes[name];
}

function sameTypes(left: readonly number[], right: readonly number[]): boolean {
  return left.length === right.length && left.every((type, index) => type === right[index]);
}

export function readFunctions(reader: BinaryReader, types: readonly FunctionType[]): number[] {
  return readList(reader, "functions", most.functions, () => readIndex(reader, types.length, "a type"));
}

/** Allows at most one table of functions, of fixed size. */
export function readTable(reader: BinaryReader): number | undefined {
  if (reader.count("tables", 1) === 0) return undefined;
  reader.expect(0x70, "a table of functions");
  const { min } = readLimits(reader);
  return checkBound("entries in the table", min, most.table);
}

export function readMemory(reader: BinaryReader, imported: ParsedModule["memory"]): ParsedModule["memory"] {
  if (reader.count("memories", 1) === 0) return imported;
  if (imported !== undefined) throw reader.fault("one memory", "another beside the imported one");
  return readLimits(reader);
}

function readLimits(reader: BinaryReader): { min: number; max: number | undefined } {
  const flags = reader.byte();
  if (flags > 1) throw reader.fault("limits of 32 bits, not shared", hex(flags));
  const min = reader.u32();
  return { min, max: flags === 1 ? reader.u32() : undefined };
}

export function readGlobals(reader: BinaryReader): ModuleGlobal[] {
  return readList(reader, "globals", most.globals, () => {
    const type = readValueType(reader);
    const mutable = reader.byte();
    if (mutable > 1) throw reader.fault("0 or 1", hex(mutable));
    return { type, mutable: mutable === 1, init: readConstant(reader) };
  });
}

/** Reads a constant: a literal and `end`. Nothing else is needed, since no global can be imported. */
function readConstant(reader: BinaryReader): Uint8Array {
  const from = reader.at;
  const code = reader.byte();
  if (code === 0x41) reader.signed(32);
  else if (code === 0x42) reader.signed(64);
  else if (code === 0x43) reader.take(4);
  else if (code === 0x44) reader.take(8);
  else throw reader.fault("a constant", hex(code));
  reader.expect(0x0b, "the end of a constant");
  return reader.since(from);
}

/** Keeps the exports of the form; others cannot be reached and are dropped. */
export function readExports(
  reader: BinaryReader,
  { functions, globals }: Pick<ParsedModule, "functions" | "globals">,
  form: ModuleForm,
): Pick<ParsedModule, "entries" | "exports" | "isScript"> {
  const seen = new Set<string>();
  const entries = new Map<string, number>();
  const exports: ModuleExport[] = [];
  readList(reader, "exports", most.exports, () => {
    const name = reader.name();
    if (seen.has(name)) throw new ModuleFault(`expected each export once, got \`${name}\` again`);
    seen.add(name);
    const kind = reader.byte();
    if (kind > 3) throw reader.fault("a function, a table, a memory or a global", hex(kind));
    const index = reader.u32();
    const isEntry = form.entries.includes(name);
    if (isEntry || Object.hasOwn(form.functions, name)) {
      if (kind !== 0 || index >= functions.length)
        throw new ModuleFault(`expected the export \`${name}\` to be a function`);
      if (isEntry) entries.set(name, index);
      else exports.push({ name, kind, index });
    } else if (form.globals.includes(name)) {
      if (kind !== 3 || index >= globals.length)
        throw new ModuleFault(`expected the export \`${name}\` to be a global`);
      exports.push({ name, kind, index });
    }
  });
  return { entries, exports, isScript: seen.has("__invoke") };
}

/** Checks active element segments of functions and returns them unchanged. */
export function readElements(reader: BinaryReader, functions: number): Uint8Array {
  const from = reader.at;
  readList(reader, "element segments", most.segments, () => {
    reader.expect(0x00, "an active segment of functions");
    readOffset(reader);
    readList(reader, "functions in a segment", most.table, () => readIndex(reader, functions, "a function"));
  });
  return reader.since(from);
}

/** Checks active data segments, which must lie in the memory as it begins, and returns them unchanged. */
export function readData(reader: BinaryReader, memory: ParsedModule["memory"]): Uint8Array {
  const from = reader.at;
  readList(reader, "data segments", most.segments, () => {
    reader.expect(0x00, "an active segment of data");
    const offset = readOffset(reader) >>> 0;
    const { length } = reader.take(reader.u32());
    // The metered module's memory may begin larger than this one says.
    if (offset + length > (memory?.min ?? 0) * pageBytes)
      throw new ModuleFault("the module has a segment outside its memory");
  });
  return reader.since(from);
}

function readOffset(reader: BinaryReader): number {
  reader.expect(0x41, "a constant offset");
  const offset = reader.signed(32);
  reader.expect(0x0b, "the end of an offset");
  return offset;
}

export function readBodies(reader: BinaryReader): Body[] {
  return readList(reader, "function bodies", most.functions, () => {
    const length = checkBound("bytes in a function", reader.u32(), most.bodyBytes);
    const body = reader.span(length);
    const localGroups = body.count("groups of locals", most.locals);
    const from = body.at;
    let localCount = 0;
    for (let group = 0; group < localGroups; group++) {
      localCount = checkBound("locals in a function", localCount + body.u32(), most.locals);
      readValueType(body);
    }
    return { locals: body.since(from), localGroups, localCount, code: body };
  });
}

export function readIndex(reader: BinaryReader, count: number, what: string): number {
  const index = reader.u32();
  if (index >= count) throw reader.fault(`${what} below ${count}`, String(index));
  return index;
}

function readList<T>(reader: BinaryReader, what: string, maxItems: number, read: () => T): T[] {
  const count = reader.count(what, maxItems);
  const items: T[] = [];
  for (let index = 0; index < count; index++) items.push(read());
  return items;
}
