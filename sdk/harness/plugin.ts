import type { ActionEnvelope, JsonObject, PluginInput, Verdict } from "../contract/index.ts";
import { PluginFault } from "./fault.ts";
import { readPluginFiles } from "./folder.ts";
import { abiModule, Host, type Log } from "./host.ts";
import { readVerdict } from "./verdict.ts";

export interface LoadOptions {
  /** In place of the manifest's defaults, member by member. */
  readonly settings?: JsonObject;
  readonly log?: Log;
}

export interface LoadedPlugin {
  readonly name: string;
  readonly settings: JsonObject;
  /** The plugin's verdict, each time from a fresh state; throws PluginFault where the gateway would block for it. */
  evaluate(action: ActionEnvelope): Verdict;
}

const largestInput = 4_194_304;

/**
 * Loads a plugin out of its folder, or a module by itself, which then has the name of its file. Rejects where the module
 * lacks `evaluate`, imports what no gateway gives, or fails before its first call. It runs without the gateway's meter:
 * a plugin that never ends never ends here either.
 */
export async function loadPlugin(
  path: string,
  { settings = {}, log = silent }: LoadOptions = {},
): Promise<LoadedPlugin> {
  const { name, module, defaults } = await readPluginFiles(path);
  const compiled = new WebAssembly.Module(module);
  const merged: JsonObject = { ...defaults, ...settings };
  begin(compiled, new Host(new Uint8Array(), log));
  return {
    name,
    settings: merged,
    evaluate: (action) => {
      const input: PluginInput = { settings: merged, action };
      const bytes = new TextEncoder().encode(JSON.stringify(input));
      if (bytes.length > largestInput) throw new PluginFault("input_cap", `expected at most ${largestInput} bytes`);
      const host = new Host(bytes, log);
      const code = begin(compiled, host)();
      if (code !== 0) throw new PluginFault("plugin_error", "the plugin answered with an error code");
      return readVerdict(host.answer(), name, action.phase);
    },
  };
}

/** A new instance, its beginning behind it: `evaluate`. */
function begin(module: WebAssembly.Module, host: Host): () => unknown {
  return trapping(() => {
    const { exports } = new WebAssembly.Instance(module, { [abiModule]: host.functions });
    const { _initialize: initialize, evaluate } = exports;
    if (typeof initialize === "function") initialize();
    if (typeof evaluate !== "function") throw new TypeError("expected the module to export `evaluate`");
    return () => trapping(() => evaluate());
  });
}

function trapping<T>(run: () => T): T {
  try {
    return run();
  } catch (cause) {
    if (cause instanceof WebAssembly.RuntimeError) throw new PluginFault("trap", cause.message, { cause });
    throw cause;
  }
}

function silent(): void {}
