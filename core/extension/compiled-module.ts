import { Worker } from "node:worker_threads";
import type { JsonObject } from "../kernel/json.ts";
import type { Snapshot } from "./snapshot.ts";
import type { MeteredModule } from "./wasm/meter.ts";
import { ModuleFault } from "./wasm/module-fault.ts";

/** A module that was checked, metered and compiled, and did what it does before its first call. Threads can share it. */
export interface CompiledModule extends Pick<MeteredModule, "state"> {
  readonly module: WebAssembly.Module;
  readonly snapshot: Snapshot;
}

/** What the worker is given, and what it answers with. */
export interface CompileOrder {
  readonly bytes: Uint8Array;
  readonly memoryPages: number;
  /** What the module may spend before its first call, and again on its settings. */
  readonly fuel: number;
  /** What a module that checks its settings is asked about. */
  readonly settings: JsonObject;
}
export type CompileAnswer = CompiledModule | { readonly fault: string };

const compileMs = 10_000;
const heapMegabytes = 128;

/**
 * Checks, meters, compiles and begins a module, and has it check its settings, in a thread of its own, which is given up
 * where it takes too long or too much memory: a module is input, and reading it is work. Rejects with ModuleFault.
 */
export function compileModule(order: CompileOrder): Promise<CompiledModule> {
  const worker = new Worker(new URL("./compile-worker.js", import.meta.url), {
    workerData: order,
    env: {},
    resourceLimits: { maxOldGenerationSizeMb: heapMegabytes },
  });
  return new Promise<CompiledModule>((resolve, reject) => {
    const fail = (message: string): void => reject(new ModuleFault(message));
    const timer = setTimeout(() => fail(`expected to be compiled within ${compileMs} ms`), compileMs);
    worker.once("message", (answer: CompileAnswer) => {
      if ("fault" in answer) fail(answer.fault);
      else resolve(answer);
    });
    worker.once("error", () => fail("the module cannot be compiled within bounds"));
    worker.once("exit", () => {
      clearTimeout(timer);
      fail("the compiler ended without an answer");
    });
  }).finally(() => void worker.terminate());
}
