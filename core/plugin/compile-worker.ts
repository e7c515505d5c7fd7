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
    // Checks our own limits first: an oversized module never reaches the engine.
    const metered = meterModule(parseModule(bytes), memoryPages);
    // The engine validates the original module, so that the module cannot name what metering adds.
    if (!WebAssembly.validate(bytes)) return { fault: "expected a valid module: the engine refuses it" };
    const module = new WebAssembly.Module(metered.bytes);
    const compiled = { module, state: metered.state, snapshot: initialize(module, metered, fuel) };
    if (metered.checksSettings) runSettingsCheck(compiled, settings, fuel);
    return compiled;
  } catch (error) {
    if (error instanceof ModuleFault || error instanceof PluginBreach) return { fault: error.message };
    if (error instanceof WebAssembly.CompileError) return { fault: "expected a valid module: the engine refuses it" };
    throw error;
  }
}

/** Runs the module's start functions. */
function initialize(module: WebAssembly.Module, { state, initializers }: MeteredModule, fuel: number): Snapshot {
  const instance = new PluginInstance(module, state);
  instance.refill(fuel);
  for (const name of initializers) instance.run(name);
  return takeSnapshot(instance.state);
}
