import { compileModule } from "../../core/extension/compiled-module.ts";
import { HostCall } from "../../core/extension/host-call.ts";
import { PluginMachine } from "../../core/extension/plugin-machine.ts";
import type { ActionEnvelope } from "../../core/kernel/envelope.ts";
import { makeAction } from "../support/action.ts";
import { openSecretEgress, secretEgressModule } from "../support/secret-egress.ts";

// Microseconds a plugin takes, from the envelope to the verdict, beside the bare call of the same module: not metered,
// not restored, its answer not read. And what a unit of fuel is worth.
const rounds = 20_000;
const settings = '{"decision":"block","least_entropy":35,"ignore":[]}';
const fuel = 50_000_000;

function quantiles(call: () => void): string {
  for (let round = 0; round < rounds / 4; round++) call();
  const times = new Float64Array(rounds);
  for (let round = 0; round < rounds; round++) {
    const started = performance.now();
    call();
    times[round] = (performance.now() - started) * 1_000;
  }
  times.sort();
  const at = (share: number): string => (times[Math.floor(share * (rounds - 1))] ?? 0).toFixed(1).padStart(7);
  return `p50 ${at(0.5)} µs  p99 ${at(0.99)} µs`;
}

function bareCall(module: WebAssembly.Module, input: Uint8Array): () => void {
  const host = new HostCall(() => undefined);
  const functions = host.functions;
  const instance = new WebAssembly.Instance(module, { "extism:host/env": functions });
  const { evaluate } = instance.exports;
  if (typeof evaluate !== "function") throw new TypeError("expected a plugin");
  return () => {
    host.begin(input);
    evaluate();
    host.end();
  };
}

const actions: readonly (readonly [string, ActionEnvelope])[] = [
  ["a path", makeAction({ arguments: { path: "/home/ada/project/src/index.ts" } })],
  ["6 KB of text", makeAction({ arguments: { content: "lorem ipsum dolor sit amet\n".repeat(230) } })],
];
const module = secretEgressModule();
const policy = await openSecretEgress();
const machine = new PluginMachine(await compileModule({ bytes: module, memoryPages: 256, fuel }));

for (const [name, action] of actions) {
  const input = new TextEncoder().encode(`{"settings":${settings},"action":${JSON.stringify(action)}}`);
  process.stdout.write(`secret-egress, ${name} (${input.length} bytes)\n`);
  process.stdout.write(`  the bare call      ${quantiles(bareCall(new WebAssembly.Module(module), input))}\n`);
  process.stdout.write(`  metered, restored  ${quantiles(() => machine.call(input, fuel))}\n`);
  process.stdout.write(`  as a policy        ${quantiles(() => policy.evaluate(action))}\n`);
  const started = performance.now();
  for (let round = 0; round < 1_000; round++) machine.call(input, fuel);
  const nanoseconds = ((performance.now() - started) * 1_000) / machine.fuelUsed;
  process.stdout.write(`  fuel               ${machine.fuelUsed} units, ${nanoseconds.toFixed(2)} ns each\n`);
}
