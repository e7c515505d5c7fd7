import { GatewayError } from "../action/error.ts";
import { admitModule } from "../plugin/plugin.ts";
import type { CompiledModule } from "../plugin/plugin-machine.ts";
import { type PluginSource, readPlugin, readPluginTests } from "../policy/plugin-source.ts";
import type { ReadyTest } from "../policy/test-file.ts";
import { readExtensionFolder } from "../trust/folder.ts";
import { acceptUnverified } from "../trust/verified-extension.ts";

/** A plugin with readable tests and a module that the sandbox admits. */
export interface OpenedPlugin {
  readonly source: PluginSource;
  readonly compiled: CompiledModule;
  readonly tests: readonly ReadyTest[];
}

/** Opens a plugin for its author: signatures are not checked. Rejects as the loader does. */
export async function openPlugin(path: string): Promise<OpenedPlugin> {
  const extension = acceptUnverified(await readExtensionFolder(path, "plugin"), null);
  const source = readPlugin(path, extension, {});
  const tests = await readPluginTests(path, extension, source.settingsSchema);
  const { name, module, settings, limits } = source;
  return { source, tests, compiled: await admitModule({ name, module, settings, ...limits }) };
}

/** Opens a plugin with tests. Rejects with PLUGIN_INVALID where it has none. */
export async function openTestedPlugin(path: string): Promise<OpenedPlugin> {
  const plugin = await openPlugin(path);
  if (plugin.tests.length > 0) return plugin;
  const hint = "a file `tests/calls.yaml` with a list `cases` is enough";
  throw new GatewayError("PLUGIN_INVALID", `\`${path}\`: expected tests in \`tests/*.yaml\`, got none; ${hint}`);
}
