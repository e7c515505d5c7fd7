import type { createPlugin, ExtismPluginOptions, Plugin } from "@extism/extism";
import { PluginBreach } from "./breach.ts";

/** Functions of ours by module and name, in place of those of the engine. */
export type HostFunctions = NonNullable<ExtismPluginOptions["functions"]>;

let creating: Promise<typeof createPlugin> | undefined;
const silent = Object.assign(Object.create(console), {
  ...{ trace: ignore, debug: ignore, info: ignore, warn: ignore, error: ignore },
}) as Console;

/**
 * Makes a plugin of Extism, in this thread. No files, no hosts, no log; `useWasi` brings the WASI of Node, which only
 * authors' own modules may have. Rejects with PluginBreach where the module cannot be instantiated.
 */
export async function openEngine(
  module: WebAssembly.Module,
  functions: HostFunctions,
  useWasi = false,
): Promise<Plugin> {
  creating ??= loadEngine();
  const create = await creating;
  try {
    return await create(module, {
      ...{ useWasi, runInWorker: false, allowedHosts: [], allowedPaths: {}, config: {} },
      ...{ logger: silent, logLevel: "silent", enableWasiOutput: false },
      fetch: () => Promise.reject(new TypeError("a plugin has no network")),
      functions,
    });
  } catch (error) {
    if (!(error instanceof WebAssembly.RuntimeError)) throw error;
    throw new PluginBreach("trap", "the module has a segment outside its memory or its table");
  }
}

/** Loads the engine where a plugin is there, without the warning about the WASI of Node: no plugin gets that one. */
async function loadEngine(): Promise<typeof createPlugin> {
  const { emitWarning } = process;
  process.emitWarning = (...warning: unknown[]) => {
    if (!String(warning[0]).startsWith("WASI ")) Reflect.apply(emitWarning, process, warning);
  };
  try {
    return (await import("@extism/extism")).createPlugin;
  } finally {
    process.emitWarning = emitWarning;
  }
}

function ignore(): void {}
