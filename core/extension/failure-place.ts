import type { Origin } from "./wasm/body-meter.ts";
import { meterModule } from "./wasm/meter.ts";
import { parseModule } from "./wasm/module-parser.ts";

/**
 * Where in the module, as its author built it, the plugin was when it failed, by the stack of a trial: byte offsets of
 * instructions, the innermost call first; empty where it failed outside its code. `module` is one that the sandbox admits
 * under `memoryPages`.
 */
export function failurePlaces(stack: string, module: Uint8Array, memoryPages: number): readonly number[] {
  const metered = [...stack.matchAll(/wasm-function\[\d+\]:0x([0-9a-f]+)/g)];
  if (metered.length === 0) return [];
  const origins: Origin[] = [];
  meterModule(parseModule(module), memoryPages, origins);
  return metered.map(([, offset = ""]) => originOf(Number.parseInt(offset, 16), origins));
}

/** What the meter put before an instruction counts as that instruction. */
function originOf(metered: number, origins: readonly Origin[]): number {
  return origins.findLast((origin) => origin.metered <= metered)?.original ?? 0;
}
