import { encodeInput } from "../plugin/abi.ts";
import { HostCall } from "../plugin/host-call.ts";
import { PluginMachine } from "../plugin/plugin-machine.ts";
import { readPluginVerdict } from "../plugin/plugin-verdict.ts";
import type { PluginSource } from "../policy/plugin-source.ts";
import { runPluginOnce } from "../policy/plugin-test.ts";
import type { ReadyTest } from "../policy/test-file.ts";
import { type OpenedPlugin, openTestedPlugin } from "./plugin-folder.ts";
import { print, printFaults } from "./print.ts";

/** Microseconds. */
interface Quantiles {
  readonly p50: number;
  readonly p99: number;
}

interface Measured {
  readonly name: string;
  /** Bytes of input. */
  readonly bytes: number;
  /** Units of one call. */
  readonly fuel: number;
  /** The module without meter, snapshot and parsing of its answer. */
  readonly bare: Quantiles;
  readonly sandbox: Quantiles;
}

const warmUpMs = 100;
const measureMs = 300;
const maxSamples = 20_000;

/** `gateway plugin bench`. */
export async function bench(folder: string, { json }: { readonly json?: true }): Promise<void> {
  const plugin = await printFaults(json, () => openTestedPlugin(folder));
  if (plugin === undefined) return;
  const { name, version, limits } = plugin.source;
  if (!json) print(`${name} ${version}: microseconds a call`);
  const cases: Measured[] = [];
  for (const [test, input] of pickInputs(plugin)) {
    const measured = measure(plugin, test, input);
    if (!json) for (const line of describeMeasured(measured, limits.fuel)) print(line);
    cases.push(measured);
  }
  if (json) print(JSON.stringify({ ok: true, name, version, fuel_limit: limits.fuel, cases }));
}

type Input = readonly [test: ReadyTest, input: Uint8Array];

/** Picks the smallest, middle and largest input, leaving out those that trap: they have no bare call to compare with. */
function pickInputs({ source, compiled, tests }: OpenedPlugin): readonly Input[] {
  const { name, limits } = source;
  const inputs = tests
    .filter(({ test, settings }) => {
      const trial = runPluginOnce({ compiled, name, fuel: limits.fuel }, { settings, action: test.envelope });
      return trial.verdict.error === undefined;
    })
    .map((ready): Input => [ready, encodeInput(JSON.stringify(ready.settings), ready.test.envelope)])
    .toSorted(([, a], [, b]) => a.length - b.length);
  const picked = [0, Math.floor((inputs.length - 1) / 2), inputs.length - 1].map((index) => inputs[index]);
  return [...new Set(picked)].filter((input) => input !== undefined);
}

function measure({ source, compiled }: OpenedPlugin, { test }: ReadyTest, input: Uint8Array): Measured {
  const machine = new PluginMachine(compiled);
  const { phase } = test.envelope;
  const sandbox = quantiles(() => readPluginVerdict(machine.call(input, source.limits.fuel), source.name, phase));
  const bare = quantiles(bareCall(source, input));
  return { name: test.name, bytes: input.length, fuel: machine.fuelUsed, bare, sandbox };
}

function bareCall({ module }: PluginSource, input: Uint8Array): () => void {
  const host = new HostCall(() => undefined);
  const imports = { "extism:host/env": host.functions };
  const instance = new WebAssembly.Instance(new WebAssembly.Module(module), imports);
  const { evaluate, _initialize: initialize } = instance.exports;
  if (typeof initialize === "function") initialize();
  if (typeof evaluate !== "function") throw new TypeError("bareCall: expected an admitted module");
  return () => {
    host.begin(input);
    evaluate();
    host.end();
  };
}

function quantiles(call: () => void): Quantiles {
  const warm = performance.now() + warmUpMs;
  while (performance.now() < warm) call();
  const times: number[] = [];
  for (let now = performance.now(), end = now + measureMs; now < end && times.length < maxSamples; ) {
    call();
    const then = performance.now();
    times.push((then - now) * 1_000);
    now = then;
  }
  times.sort((a, b) => a - b);
  const at = (share: number): number => Number((times[Math.floor(share * (times.length - 1))] ?? 0).toFixed(1));
  return { p50: at(0.5), p99: at(0.99) };
}

function describeMeasured({ name, bytes, fuel, bare, sandbox }: Measured, limit: number): readonly string[] {
  const row = (name: string, { p50, p99 }: Quantiles): string =>
    `  ${name.padEnd(14)} p50 ${p50.toFixed(1).padStart(8)}  p99 ${p99.toFixed(1).padStart(8)}`;
  return [
    `${name}: ${bytes} bytes of input, ${fuel} of ${limit} units of fuel`,
    row("the bare call", bare),
    row("in the sandbox", sandbox),
  ];
}
