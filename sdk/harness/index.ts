export { exampleAction } from "./example.ts";
export { type FaultReason, PluginFault } from "./fault.ts";
export type { Log } from "./host.ts";
export { type LoadedPlugin, type LoadOptions, loadPlugin } from "./plugin.ts";
