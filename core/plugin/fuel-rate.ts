import { entryPoint } from "./abi.ts";
import { hostExports, meterModule, stackBytes } from "./wasm/meter.ts";
import { parseModule } from "./wasm/module-parser.ts";

/**
 * `(loop (i64.store (i32.const 8) (i64.load (i32.const 5))) (br 0))`: each iteration reads a part of what the last one
 * wrote.
 */
const loop = [0x03, 0x40, 0x41, 8, 0x41, 5, 0x29, 0, 0, 0x37, 0, 0, 0x0c, 0, 0x0b];
const body = [0, ...loop, 0x41, 0, 0x0b];
const sample = Uint8Array.from([
  ...[0x00, 0x61, 0x73, 0x6d, 1, 0, 0, 0],
  ...[1, 5, 1, 0x60, 0, 1, 0x7f],
  ...[3, 2, 1, 0],
  ...[5, 3, 1, 0, 1],
  ...[7, 12, 1, 8, ...new TextEncoder().encode(entryPoint), 0, 0],
  ...[10, body.length + 2, 1, body.length, ...body],
]);
const runs = 5;
const runFuel = 500_000;

/**
 * Measures the units of fuel that a millisecond of expensive code consumes on this machine. Takes about a millisecond.
 */
export function measureFuelRate(elapsedMs: () => number): number {
  const { bytes } = meterModule(parseModule(sample), 1);
  const { exports } = new WebAssembly.Instance(new WebAssembly.Module(bytes), {});
  const rates = Array.from({ length: runs }, () => {
    const started = elapsedMs();
    exhaust(exports);
    return runFuel / Math.max(elapsedMs() - started, 0.001);
  });
  // Other load can only slow a run down, so the fastest run counts.
  return Math.round(Math.max(...rates));
}

/** Runs the sample until its fuel is spent, which it ends in by a trap. */
function exhaust(exports: WebAssembly.Instance["exports"]): void {
  const { [hostExports.fuel]: fuel, [hostExports.stack]: stack, [entryPoint]: run } = exports;
  if (!(fuel instanceof WebAssembly.Global && stack instanceof WebAssembly.Global) || typeof run !== "function") {
    throw new TypeError("measureFuelRate: expected a metered module");
  }
  fuel.value = BigInt(runFuel);
  stack.value = stackBytes;
  try {
    run();
  } catch (error) {
    if (!(error instanceof WebAssembly.RuntimeError)) throw error;
  }
}
