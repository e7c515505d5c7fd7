import { parentPort, workerData } from "node:worker_threads";
import type { CompileAnswer, CompileOrder } from "./compiled-module.ts";
import { meterModule } from "./wasm/meter.ts";
import { ModuleFault } from "./wasm/module-fault.ts";
import { parseModule } from "./wasm/module-parser.ts";

parentPort?.postMessage(compile(workerData as CompileOrder));

function compile({ bytes, memoryPages }: CompileOrder): CompileAnswer {
  try {
    // Our bounds come first: what could be too much for the engine never reaches it.
    const { bytes: metered, state, beginnings } = meterModule(parseModule(bytes), memoryPages);
    // The engine judges the module as it came, without what was added, so nothing of it can name that.
    if (!WebAssembly.validate(bytes)) return { fault: "expected a valid module: the engine refuses it" };
    return { module: new WebAssembly.Module(metered), state, beginnings };
  } catch (error) {
    if (error instanceof ModuleFault) return { fault: error.message };
    if (error instanceof WebAssembly.CompileError) return { fault: "expected a valid module: the engine refuses it" };
    throw error;
  }
}
