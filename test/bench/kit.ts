import { compileModule } from "../../core/plugin/compiled-module.ts";
import { PluginMachine } from "../../core/plugin/plugin-machine.ts";
import { makeAction } from "../support/action.ts";
import { buildAssembly } from "../support/assembly.ts";

// What asking five conditions of an action of 1 KB costs in the sandbox, by `get` and by one `read`; in turns, so that
// neither has the quieter machine.
const rounds = 200;
const calls = 200;
const fuel = 5_000_000;

const module = await buildAssembly("test/fixture/five-conditions");
const machine = await PluginMachine.open(await compileModule({ bytes: module, memoryPages: 16, fuel, settings: {} }));
const options = { overwrite: true, mode: 511, comment: "lorem ipsum dolor sit amet ".repeat(18) };
const action = makeAction({ tool: "write_file", arguments: { path: "/etc/hosts", options } });

const ways = [false, true].map((read) => ({
  name: read ? "read" : "get",
  input: Buffer.from(JSON.stringify({ settings: { read }, action })),
  times: [] as number[],
  fuelUsed: 0,
}));
for (let round = 0; round < rounds; round++) {
  for (const way of ways) {
    const started = performance.now();
    for (let call = 0; call < calls; call++) machine.call(way.input, fuel);
    way.times.push(((performance.now() - started) * 1_000) / calls);
    way.fuelUsed = machine.fuelUsed;
  }
}
process.stdout.write(`five conditions, ${ways[0]?.input.length} bytes, ${module.length} bytes of module\n`);
for (const { name, times, fuelUsed } of ways) {
  const median = times.toSorted((a, b) => a - b)[rounds / 2] ?? Number.NaN;
  process.stdout.write(`  ${name.padEnd(5)} ${median.toFixed(1)} µs a call, ${fuelUsed} units of fuel\n`);
}
