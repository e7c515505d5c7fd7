import { parentPort, workerData } from "node:worker_threads";
import { PluginBreach } from "./breach.ts";
import { type CompileAnswer, type CompileOrder, configOf, runSettingsCheck } from "./compiled-module.ts";
import { PluginInstance } from "./plugin-machine.ts";
import { type Snapshot, takeSnapshot } from "./snapshot.ts";
import { ModuleFault } from "./wasm/binary.ts";
import { type MeteredModule, meterModule } from "./wasm/meter.ts";
import { pageBytes } from "./wasm/module.ts";
import { parseModule } from "./wasm/module-parser.ts";

parentPort?.postMessage(await compile(workerData as CompileOrder));

async function compile({ bytes, memoryPages, fuel, settings }: CompileOrder): Promise<CompileAnswer> {
  try {
    // Checks our own limits first: an oversized module never reaches the engine.
    const metered = meterModule(parseModule(bytes), memoryPages);
    // The engine validates the original module, so that the module cannot name what metering adds.
    if (!WebAssembly.validate(bytes)) return { fault: "expected a valid module: the engine refuses it" };
    const module = new WebAssembly.Module(metered.bytes);
    const opened = { module, state: metered.state, config: configOf(settings) };
    const compiled = { ...opened, snapshot: initialize(await PluginInstance.open(opened), metered, fuel) };
    if (metered.checksSettings) await runSettingsCheck(compiled, settings, fuel);
    return compiled;
  } catch (error) {
    if (error instanceof ModuleFault || error instanceof PluginBreach) return { fault: error.message };
    if (error instanceof WebAssembly.CompileError) return { fault: "expected a valid module: the engine refuses it" };
    throw error;
  }
}

/** Runs the module's start functions, and leaves room in the memory for a call to grow it. */
function initialize(instance: PluginInstance, metered: MeteredModule, fuel: number): Snapshot {
  instance.refill(fuel);
  for (const name of metered.initializers) instance.run(name);
  const { memory } = instance.state;
  const pages = (memory?.buffer.byteLength ?? 0) / pageBytes;
  memory?.grow(Math.min(metered.growthPages, metered.maxPages - pages));
  return takeSnapshot(instance.state);
}
