import { type ActionEnvelope, phases } from "../../core/action/envelope.ts";
import type { Json } from "../../core/action/json.ts";
import { abiModule, encodeInput, pluginInput } from "../../core/plugin/abi.ts";
import { compileModule } from "../../core/plugin/compiled-module.ts";
import { openEngine } from "../../core/plugin/engine.ts";
import { compilePlugin } from "../../core/plugin/plugin.ts";
import { PluginMachine } from "../../core/plugin/plugin-machine.ts";
import { makeAction } from "../support/action.ts";
import { buildAssembly } from "../support/assembly.ts";
import { openPool, portsOfOneThread } from "../support/plugin-port.ts";

// Microseconds that a plugin takes which reads an envelope of 1 KB and asks five conditions of it: the bare module, called
// without any sandbox, which keeps its state from call to call; metered and put back; as a policy, from the envelope to the
// verdict; and the same in the pool. The time is that from when a number of evaluations were asked for together to the
// answer of each. The ways take turns, so that none has the quieter machine. It prints and asserts nothing.
const fuel = 5_000_000;
const evaluations = 40_000;
const settings = { read: true };

type Way = readonly [name: string, call: (action: ActionEnvelope) => unknown];

const module = await buildAssembly("test/fixture/five-conditions");
const compiled = await compileModule({ bytes: module, memoryPages: 16, fuel, settings: {} });
const machine = await PluginMachine.open(compiled);
const pool = openPool(2);
pool.warm();
const ref = { kind: "plugin", name: "five-conditions", version: "1.0.0", digest: "sha256:00", signer: null } as const;
const options = { ...portsOfOneThread, ref, mode: "enforce", phases, settings, fuel, pool } as const;
const policy = await compilePlugin({ ...options, module, memoryPages: 16 });
const pooled = await compilePlugin({ ...options, module, memoryPages: 16, sliceFuel: 1 });
const input = encodeInput(pluginInput(JSON.stringify(settings), sample()));
const rawModule = new WebAssembly.Module(module);
const raw = rawCall(rawModule, input);
const bare = await openEngine(rawModule, {});

const ways: readonly Way[] = [
  ["the raw module", () => raw()],
  ["Extism, bare", () => bare.call("evaluate", input)],
  ["metered, put back", () => machine.call(input, fuel)],
  ["as a policy", (action) => policy.evaluate(action)],
  ["in the pool", (action) => pooled.evaluate(action)],
];

process.stdout.write(`node ${process.version}, ${input.length} bytes of input, ${module.length} bytes of module\n\n`);
process.stdout.write("| at once | way | p50 µs | p99 µs | of raw | evaluations/s |\n|---|---|---|---|---|---|\n");
for (const atOnce of [1, 16, 64]) {
  const measured = await measure(atOnce);
  const floor = measured.get("the raw module")?.p50 ?? 0;
  for (const [name, { p50, p99, perSecond }] of measured) {
    const cells = [atOnce, name, p50.toFixed(1), p99.toFixed(1), (p50 / floor).toFixed(2), Math.round(perSecond)];
    process.stdout.write(`| ${cells.join(" | ")} |\n`);
  }
}
machine.call(input, fuel);
process.stdout.write(`\none call takes ${machine.fuelUsed} units of fuel\n`);
await pool.close();

interface Measured {
  readonly p50: number;
  readonly p99: number;
  readonly perSecond: number;
}

async function measure(atOnce: number): Promise<ReadonlyMap<string, Measured>> {
  const seen = new Map(ways.map(([name]) => [name, { times: [] as number[], spentUs: 0 }]));
  for (let round = -evaluations / atOnce / 4; round < evaluations / atOnce; round++) {
    for (const [name, call] of ways) {
      const actions = Array.from({ length: atOnce }, sample);
      const started = performance.now();
      const ends = await Promise.all(
        actions.map(async (action) => {
          await call(action);
          return (performance.now() - started) * 1_000;
        }),
      );
      const kept = seen.get(name);
      if (round < 0 || kept === undefined) continue;
      kept.spentUs += Math.max(...ends);
      kept.times.push(...ends);
    }
  }
  return new Map([...seen].map(([name, { times, spentUs }]) => [name, summarize(times, spentUs)]));
}

function summarize(times: number[], spentUs: number): Measured {
  times.sort((a, b) => a - b);
  const at = (share: number): number => times[Math.floor(share * (times.length - 1))] ?? Number.NaN;
  return { p50: at(0.5), p99: at(0.99), perSecond: times.length / (spentUs / 1e6) };
}

/** A new one each time: what is written of an action is kept while it is judged. */
function sample(): ActionEnvelope {
  const given: Json = {
    path: "/etc/hosts",
    options: { overwrite: true, mode: 512, comment: "lorem ipsum dolor sit amet ".repeat(18) },
  };
  return makeAction({ tool: "write_file", arguments: given });
}

/** The module with the least of a host: flat memory that nothing checks, and that is never zeroed. */
function rawCall(bareModule: WebAssembly.Module, bytes: Uint8Array): () => Uint8Array {
  const memory = new Uint8Array(1_048_576);
  const view = new DataView(memory.buffer);
  const inputView = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  let used = 8;
  let output: Uint8Array = memory;
  const functions = {
    input_length: () => BigInt(bytes.length),
    input_load_u8: (at: bigint) => bytes[Number(at)],
    input_load_u64: (at: bigint) => inputView.getBigInt64(Number(at), true),
    alloc: (length: bigint) => {
      used += Number(length) + 8;
      return BigInt(used - Number(length) - 8);
    },
    store_u8: (at: bigint, value: number) => view.setUint8(Number(at), value),
    store_u64: (at: bigint, value: bigint) => view.setBigInt64(Number(at), value, true),
    output_set: (at: bigint, length: bigint) => {
      output = memory.slice(Number(at), Number(at + length));
    },
  };
  const { evaluate } = new WebAssembly.Instance(bareModule, { [abiModule]: functions }).exports;
  if (typeof evaluate !== "function") throw new TypeError("expected a plugin");
  return () => {
    used = 8;
    evaluate();
    return output;
  };
}
