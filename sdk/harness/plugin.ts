import type { ActionEnvelope, JsonObject, PluginInput, Verdict } from "../contract/index.ts";
import { PluginFault } from "./fault.ts";
import { readPluginFiles } from "./folder.ts";
import { abiModule, Host, type Log } from "./host.ts";
import { checkSettings } from "./settings.ts";
import { readVerdict } from "./verdict.ts";
import { wasiModule } from "./wasi.ts";

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

const maxInput = 4_194_304;

/**
 * Loads a plugin from its folder, or a module by itself, named after its file. Rejects where the module lacks
 * `evaluate`, imports unknown functions, fails before its first call, or refuses its settings. Runs without the
 * gateway's meter: an endless plugin never ends here.
 */
export async function loadPlugin(
  path: string,
  { settings = {}, log = silent }: LoadOptions = {},
): Promise<LoadedPlugin> {
  const { name, module, defaults } = await readPluginFiles(path);
  const compiled = new WebAssembly.Module(module);
  const merged: JsonObject = { ...defaults, ...settings };
  const { evaluate, validate_settings: check } = begin(compiled, new Host(new Uint8Array(), log, merged));
  if (typeof evaluate !== "function") throw new TypeError("expected the module to export `evaluate`");
  const ask = (entry: string, input: Partial<PluginInput>): Uint8Array => callOnce(compiled, entry, input, log);
  if (typeof check === "function") checkSettings(ask("validate_settings", { settings: merged }));
  return {
    name,
    settings: merged,
    evaluate: (action) => readVerdict(ask("evaluate", { settings: merged, action }), name, action.phase),
  };
}

/** Calls one export in a new instance and returns its output. */
function callOnce(module: WebAssembly.Module, entry: string, input: Partial<PluginInput>, log: Log): Uint8Array {
  const bytes = new TextEncoder().encode(JSON.stringify(input));
  if (bytes.length > maxInput) throw new PluginFault("input_cap", `expected at most ${maxInput} bytes`);
  const host = new Host(bytes, log, input.settings);
  const run = begin(module, host)[entry];
  if (typeof run !== "function") throw new TypeError(`expected the module to export \`${entry}\``);
  if (trapping(() => run()) !== 0) throw new PluginFault("plugin_error", "the plugin answered with an error code");
  return host.answer();
}

/** The exports of a new, initialised instance. */
function begin(module: WebAssembly.Module, host: Host): WebAssembly.Instance["exports"] {
  return trapping(() => {
    const { exports } = new WebAssembly.Instance(module, { [abiModule]: host.functions, [wasiModule]: host.wasi });
    if (exports.memory instanceof WebAssembly.Memory) host.guestMemory = exports.memory;
    const { _initialize: initialize } = exports;
    if (typeof initialize === "function") initialize();
    return exports;
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
