import type { HostSignature } from "../../plugin/abi.ts";
import type { ModuleForm } from "../../plugin/wasm/module.ts";

const numbers = (count: number): readonly "i32"[] => Array.from({ length: count }, () => "i32" as const);
const takes = (params: number, results: 0 | 1): HostSignature => ({
  params: numbers(params),
  results: numbers(results),
});

/** The module name of OPA's imports. */
export const opaModule = "env";

/** The functions that a module may import: abort, print, and the built-in functions of the host by their number of arguments, after an id and a context. */
const imports: Readonly<Record<string, HostSignature>> = {
  opa_abort: takes(1, 0),
  opa_println: takes(1, 0),
  opa_builtin0: takes(2, 1),
  opa_builtin1: takes(3, 1),
  opa_builtin2: takes(4, 1),
  opa_builtin3: takes(5, 1),
  opa_builtin4: takes(6, 1),
};
/** The names of what a module may import, but for its memory. */
export const opaImports: readonly string[] = Object.keys(imports);

/** The exports of version 1 that the host calls; addresses are offsets in the memory. */
const functions = {
  opa_malloc: takes(1, 1),
  opa_json_parse: takes(2, 1),
  opa_json_dump: takes(1, 1),
  opa_eval_ctx_new: takes(0, 1),
  opa_eval_ctx_set_input: takes(2, 0),
  opa_eval_ctx_set_data: takes(2, 0),
  opa_eval_ctx_set_entrypoint: takes(2, 0),
  opa_eval_ctx_get_result: takes(1, 1),
  eval: takes(1, 1),
  builtins: takes(0, 1),
  entrypoints: takes(0, 1),
} as const satisfies Readonly<Record<string, HostSignature>>;
export type OpaFunction = keyof typeof functions;

/** The global that tells the version of the interface. */
export const versionGlobal = "opa_wasm_abi_version";

/** A module that OPA made of Rego. It has the memory that it imports for its own. */
export const opaForm: ModuleForm = {
  importOf: (module, name) => (module === opaModule && Object.hasOwn(imports, name) ? imports[name] : undefined),
  memoryImport: { module: opaModule, name: "memory" },
  entries: [],
  functions,
  globals: [versionGlobal],
  check: () => undefined,
};
