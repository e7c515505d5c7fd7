import { parentPort, workerData } from "node:worker_threads";
import { PluginBreach } from "./breach.ts";
import { type CompileAnswer, type CompileOrder, runSettingsCheck } from "./compiled-module.ts";
import { PluginInstance, type Snapshot, takeSnapshot } from "./plugin-machine.ts";
import { ModuleFault } from "./wasm/binary.ts";
import { type MeteredModule, meterModule } from "./wasm/meter.ts";
import { parseModule } from "./wasm/module-parser.ts";

parentPort?.postMessage(compile(workerData as CompileOrder));

function compile({ bytes, memoryPages, fuel, settings }: CompileOrder): CompileAnswer {
  try {
    // Our bounds come first: what could be too much for the engine never reaches it.
    const metered = meterModule(parseModule(bytes), memoryPages);
    // The engine judges the module as it came, without what was added, so nothing of it can name that.
    if (!WebAssembly.validate(bytes)) return { fault: "expected a valid module: the engine refuses it" };
    const module = new WebAssembly.Module(metered.bytes);
    const compiled = { module, state: metered.state, snapshot: begin(module, metered, fuel) };
    if (metered.checksSettings) runSettingsCheck(compiled, settings, fuel);
    return compiled;
  } catch (error) {
    if (error instanceof ModuleFault || error instanceof PluginBreach) return { fault: error.message };
    if (error instanceof WebAssembly.CompileError) return { fault: "expected a valid module: the engine refuses it" };
    throw error;
  }
}

/** Runs what the module does before its first call. */
function begin(module: WebAssembly.Module, { state, beginnings }: MeteredModule, fuel: number): Snapshot {
  const instance = new PluginInstance(module, state);
  instance.refill(fuel);
  for (const name of beginnings) instance.run(name);
  return takeSnapshot(instance.state);
}
