import wabt from "wabt";
import { contentDigest } from "../../core/action/canonical-json.ts";
import { phases } from "../../core/action/envelope.ts";
import type { BreachReason } from "../../core/plugin/breach.ts";
import { compilePlugin, type PluginOptions } from "../../core/plugin/plugin.ts";
import { type ImmediatePolicy, immediate, portsOfOneThread } from "./plugin-port.ts";

const assembler = await wabt();

/** Every feature on: what the sandbox refuses, it has to see first. */
const features = {
  exceptions: true,
  tail_call: true,
  reference_types: true,
  multi_memory: true,
  memory64: true,
  function_references: true,
  gc: true,
  relaxed_simd: true,
  simd: true,
  threads: true,
  bulk_memory: true,
  multi_value: true,
  sign_extension: true,
  sat_float_to_int: true,
  mutable_globals: true,
};

/** WebAssembly text as a binary. */
export function assemble(text: string): Uint8Array {
  const module = assembler.parseWat("module.wat", text, features);
  try {
    return module.toBinary({ write_debug_names: true }).buffer;
  } finally {
    module.destroy();
  }
}

export interface OpenedPlugin {
  readonly policy: ImmediatePolicy;
  readonly breaches: BreachReason[];
  readonly rests: string[];
  /** What the breaker's clock shows. */
  readonly clock: { ms: number };
}

/** A plugin called `sample` in the sandbox, which answers at once. */
export async function openSample(
  module: string | Uint8Array,
  changed: Partial<Omit<PluginOptions, "module">> = {},
): Promise<OpenedPlugin> {
  const breaches: BreachReason[] = [];
  const rests: string[] = [];
  const clock = { ms: 0 };
  const policy = await compilePlugin({
    ...portsOfOneThread,
    ref: { kind: "plugin", name: "sample", version: "1.0.0", digest: "sha256:00", signer: null },
    mode: "enforce",
    phases,
    settings: {},
    fuel: 1_000_000,
    memoryPages: 16,
    elapsedMs: () => clock.ms,
    observer: {
      spent: () => undefined,
      breached: (_, reason) => void breaches.push(reason),
      circuitOpened: (_, tenant) => void rests.push(tenant),
    },
    ...changed,
    module: typeof module === "string" ? assemble(module) : module,
  });
  return { policy: immediate(policy), breaches, rests, clock };
}

/** The ABI's functions, imported under their own names. */
export const imports = `
  (import "extism:host/env" "input_length" (func $input_length (result i64)))
  (import "extism:host/env" "input_load_u8" (func $input_load_u8 (param i64) (result i32)))
  (import "extism:host/env" "input_load_u64" (func $input_load_u64 (param i64) (result i64)))
  (import "extism:host/env" "output_set" (func $output_set (param i64 i64)))
  (import "extism:host/env" "error_set" (func $error_set (param i64)))
  (import "extism:host/env" "alloc" (func $alloc (param i64) (result i64)))
  (import "extism:host/env" "free" (func $free (param i64)))
  (import "extism:host/env" "length" (func $length (param i64) (result i64)))
  (import "extism:host/env" "load_u8" (func $load_u8 (param i64) (result i32)))
  (import "extism:host/env" "store_u8" (func $store_u8 (param i64 i32)))
  (import "extism:host/env" "store_u64" (func $store_u64 (param i64 i64)))
  (import "extism:host/env" "log_info" (func $log_info (param i64)))`;

/** Code that answers with `verdict`. */
export function answerOf(verdict: string): string {
  const bytes = [...new TextEncoder().encode(verdict)];
  const stores = bytes.map(
    (byte, at) => `(call $store_u8 (i64.add (local.get $out) (i64.const ${at})) (i32.const ${byte}))`,
  );
  return `(local.set $out (call $alloc (i64.const ${bytes.length})))
      ${stores.join("\n")}
      (call $output_set (local.get $out) (i64.const ${bytes.length}))`;
}

/** A module that runs `body` and then answers with `verdict`, where it gets so far. `more` stands beside `evaluate`. */
export function moduleOf(body: string, verdict: string = abstain, more = "(memory 1)"): string {
  return `(module ${imports} ${more}
    (func (export "evaluate") (result i32) (local $out i64) (local $i i32) (local $j i64)
      ${body}
      ${answerOf(verdict)}
      (i32.const 0)))`;
}

export const abstain = '{"decision":"abstain","findings":[]}';

/** A module whose `evaluate` is this code, in bytes: what would be too much for the assembler. */
export function binaryOf(code: readonly number[], functions = 1): Uint8Array {
  const bodies = Array.from({ length: functions }, () => [...leb(code.length + 2), 0, ...code, 0x0b]).flat();
  const section = (id: number, content: readonly number[]): number[] => [id, ...leb(content.length), ...content];
  return Uint8Array.from([
    ...[0, 0x61, 0x73, 0x6d, 1, 0, 0, 0],
    ...section(1, [1, 0x60, 0, 1, 0x7f]),
    ...section(3, [...leb(functions), ...Array.from({ length: functions }, () => 0)]),
    ...section(7, [1, 8, ...new TextEncoder().encode("evaluate"), 0, 0]),
    ...section(10, [...leb(functions), ...bodies]),
  ]);
}

export function leb(value: number): number[] {
  return value < 128 ? [value] : [(value % 128) | 0x80, ...leb(Math.floor(value / 128))];
}

export type PluginFiles = Readonly<{ "plugin.yaml": string; "plugin.wasm": Buffer }>;

/** The folder of a plugin called `sample`, which runs `body` and answers with `verdict`. */
export function pluginFiles(verdict: string, body = ""): PluginFiles {
  return folderOf("sample", moduleOf(body, verdict));
}

/** The folder of a plugin whose module this text is. */
export function folderOf(name: string, text: string): PluginFiles {
  return folderWith(name, assemble(text));
}

/** The folder of a plugin with this module. */
export function folderWith(name: string, bytes: Uint8Array): PluginFiles {
  const module = Buffer.from(bytes);
  const manifest = `apiVersion: gateway/v1
kind: Plugin
metadata: { name: ${name}, version: 1.0.0, title: Sample }
abi: gateway-plugin/1
module: plugin.wasm
digest: ${contentDigest(module)}
`;
  return { "plugin.yaml": manifest, "plugin.wasm": module };
}
