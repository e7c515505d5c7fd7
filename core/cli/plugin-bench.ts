import { encodeInput, entryPoint, pluginInput } from "../plugin/abi.ts";
import { openEngine } from "../plugin/engine.ts";
import { PluginMachine } from "../plugin/plugin-machine.ts";
import { readPluginVerdict } from "../plugin/plugin-verdict.ts";
import { runPluginOnce } from "../policy/plugin-run.ts";
import type { ReadyTest } from "../policy/test-file.ts";
import { resumeOptimizing } from "../store/optimizer.ts";
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
  /** The module in Extism without meter, snapshot and parsing of its answer. */
  readonly bare: Quantiles;
  readonly sandbox: Quantiles;
}

const warmUpMs = 100;
const measureMs = 300;
const maxSamples = 20_000;

/** `gateway plugin bench`. */
export async function bench(folder: string, { json }: { readonly json?: true }): Promise<void> {
  resumeOptimizing();
  const plugin = await printFaults(json, () => openTestedPlugin(folder));
  if (plugin === undefined) return;
  const { name, version, limits } = plugin.source;
  if (!json) print(`${name} ${version}: microseconds a call`);
  const cases: Measured[] = [];
  for (const [test, input] of await pickInputs(plugin)) {
    const measured = await measure(plugin, test, input);
    if (!json) for (const line of describeMeasured(measured, limits.fuel)) print(line);
    cases.push(measured);
  }
  if (json) print(JSON.stringify({ ok: true, name, version, fuel_limit: limits.fuel, cases }));
}

type Input = readonly [test: ReadyTest, input: Uint8Array];

/** Picks the smallest, middle and largest input, leaving out those that trap: they have no bare call to compare with. */
async function pickInputs({ source, compiled, tests }: OpenedPlugin): Promise<readonly Input[]> {
  const plugin = { compiled, name: source.name, fuel: source.limits.fuel };
  const inputs: Input[] = [];
  for (const ready of tests) {
    const { settings, test } = ready;
    const trial = await runPluginOnce(plugin, { settings, action: test.envelope });
    if (trial.verdict.error === undefined)
      inputs.push([ready, encodeInput(pluginInput(JSON.stringify(settings), test.envelope))]);
  }
  inputs.sort(([, a], [, b]) => a.length - b.length);
  const picked = [0, Math.floor((inputs.length - 1) / 2), inputs.length - 1].map((index) => inputs[index]);
  return [...new Set(picked)].filter((input) => input !== undefined);
}

async function measure({ source, compiled }: OpenedPlugin, { test }: ReadyTest, input: Uint8Array): Promise<Measured> {
  const machine = await PluginMachine.open(compiled);
  const { phase } = test.envelope;
  const sandbox = await quantiles(async () => {
    if (!machine.isReady) await machine.prepare();
    readPluginVerdict(machine.call(input.slice(), source.limits.fuel), source.name, phase);
  });
  const bare = await openEngine(new WebAssembly.Module(Buffer.from(source.module)), {}, true);
  try {
    const called = await quantiles(async () => void (await bare.call(entryPoint, input)));
    return { name: test.name, bytes: input.length, fuel: machine.fuelUsed, bare: called, sandbox };
  } finally {
    await bare.close();
  }
}

async function quantiles(call: () => Promise<void>): Promise<Quantiles> {
  const warm = performance.now() + warmUpMs;
  while (performance.now() < warm) await call();
  const times: number[] = [];
  for (let now = performance.now(), end = now + measureMs; now < end && times.length < maxSamples; ) {
    await call();
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
