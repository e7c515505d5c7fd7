import { command, entries, entryPoint, hostFunction, initializer, isNetworkFunction } from "../abi.ts";
import { BinaryReader, checkBound, ModuleFault } from "./binary.ts";
import {
  isOfType,
  type ModuleForm,
  type ParsedModule,
  readBodies,
  readData,
  readElements,
  readExports,
  readFunctions,
  readGlobals,
  readImports,
  readMemory,
  readTable,
  readTypes,
} from "./module.ts";

const magic = [0x00, 0x61, 0x73, 0x6d, 0x01, 0x00, 0x00, 0x00];
/** The sections in order; number 12 precedes the code for which it counts data. */
const order = [1, 2, 3, 4, 5, 6, 7, 8, 9, 12, 10, 11];
const names = "custom type import function table memory global export start element code data data-count".split(" ");
const maxModule = 4_194_304;

/** A plugin: functions of Extism and WASI, and the exports of the ABI. */
const pluginForm: ModuleForm = {
  importOf: hostFunction,
  entries,
  functions: {},
  globals: [],
  check: checkPlugin,
};

/** The module being read. */
type Draft = { -readonly [Key in keyof ParsedModule]: ParsedModule[Key] };

/**
 * Reads a module strictly: known sections once and in order, imports of the form only, all counts bounded. Drops custom
 * sections. Throws ModuleFault. Leaves checks that the engine also makes (types of operands) to it.
 */
export function parseModule(bytes: Uint8Array, form: ModuleForm = pluginForm): ParsedModule {
  checkBound("bytes in a module", bytes.length, maxModule);
  const reader = new BinaryReader(bytes);
  for (const byte of magic) reader.expect(byte, "a core module of version 1");
  const draft: Draft = {
    ...{ types: [], imports: [], functions: [], globals: [], bodies: [], entries: new Map(), exports: [] },
    ...{ tableSize: undefined, memory: undefined, start: undefined, isScript: false },
    ...{ elements: new Uint8Array(), data: new Uint8Array() },
  };
  let last = -1;
  while (!reader.done) {
    const id = reader.byte();
    const section = reader.span(reader.u32());
    if (id === 0) continue;
    const place = order.indexOf(id);
    if (place === -1) throw reader.fault("a known section", String(id));
    if (place <= last) throw reader.fault("sections once and in order", `${names[id]} again or too late`);
    last = place;
    Object.assign(draft, sectionReaders[id]?.(section, draft, form));
    section.expectEnd(`the ${names[id]} section`);
  }
  checkWhole(draft, form);
  return draft;
}

type SectionReader = (section: BinaryReader, draft: Draft, form: ModuleForm) => Partial<Draft>;

const sectionReaders: Readonly<Record<number, SectionReader>> = {
  1: (section) => ({ types: readTypes(section) }),
  2: (section, { types }, form) => {
    const { imports, memory } = readImports(section, types, form);
    return { imports, memory, functions: imports.map(({ type }) => type) };
  },
  3: (section, { functions, types }) => ({ functions: [...functions, ...readFunctions(section, types)] }),
  4: (section) => ({ tableSize: readTable(section) }),
  5: (section, { memory }) => ({ memory: readMemory(section, memory) }),
  6: (section) => ({ globals: readGlobals(section) }),
  7: (section, draft, form) => readExports(section, draft, form),
  8: (section) => ({ start: section.u32() }),
  9: (section, { functions }) => ({ elements: readElements(section, functions.length) }),
  10: (section) => ({ bodies: readBodies(section) }),
  11: (section, { memory }) => ({ data: readData(section, memory) }),
  12: (section) => {
    // The number of data segments: needed only by instructions that are refused here.
    section.u32();
    return {};
  },
};

function checkWhole(module: ParsedModule, form: ModuleForm): void {
  const { functions, imports, bodies, exports, types, start } = module;
  const defined = functions.length - imports.length;
  if (bodies.length !== defined) throw new ModuleFault(`expected ${defined} function bodies, got ${bodies.length}`);
  for (const [name, signature] of Object.entries(form.functions)) {
    const found = exports.find((each) => each.name === name);
    if (found === undefined) throw new ModuleFault(`expected the export \`${name}\`, got none`);
    if (found.index < imports.length || !isOfType(types[functions[found.index] ?? -1], signature))
      throw new ModuleFault(`expected \`${name}\` to have its type of the ABI, defined in the module`);
  }
  const missing = form.globals.find((name) => !exports.some((each) => each.name === name));
  if (missing !== undefined) throw new ModuleFault(`expected the export \`${missing}\`, got none`);
  form.check(module);
  if (start === undefined) return;
  const type = types[functions[start] ?? -1];
  if (type === undefined || type.params.length + type.results.length > 0) {
    throw new ModuleFault("expected the start function to be `() -> ()`");
  }
}

function checkPlugin(module: ParsedModule): void {
  checkNetwork(module);
  const { entries: own, types, functions, imports } = module;
  if (!own.has(entryPoint)) throw new ModuleFault(`expected the export \`${entryPoint}\`, got none`);
  for (const [name, index] of own) {
    const type = types[functions[index] ?? -1];
    const isSilent = name === initializer || name === command;
    const answers = isSilent ? "" : "7f";
    const results = type?.results.map((each) => each.toString(16)).join(" ");
    if (index < imports.length || type?.params.length !== 0 || results !== answers) {
      const expected = isSilent ? "`() -> ()`" : "`() -> i32`";
      throw new ModuleFault(`expected \`${name}\` to be ${expected}, defined in the module`);
    }
  }
}

/** The runtime of the JavaScript PDK names the functions of the network in each module; there, a call of one fails. */
function checkNetwork({ imports, isScript }: ParsedModule): void {
  const used = imports.find(({ module, name }) => isNetworkFunction(module, name));
  if (used === undefined || isScript) return;
  throw new ModuleFault(
    `expected imports of the ABI, got \`${used.module}\` \`${used.name}\`: a plugin has no network`,
  );
}
