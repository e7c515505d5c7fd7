import { abstain, assemble, binaryOf, imports, leb, moduleOf } from "./wasm-plugin.ts";

/** Modules that are not loaded, and what their author is told. */
export const hostileModules: readonly (readonly [name: string, said: RegExp, module: string | Uint8Array])[] = [
  ["no entry point", /export `evaluate`, got none/, "(module)"],
  [
    "an entry point with a parameter",
    /`evaluate` to be `\(\) -> i32`/,
    '(module (func (export "evaluate") (param i32) (result i32) (local.get 0)))',
  ],
  ["an entry point without an answer", /`evaluate` to be/, '(module (func (export "evaluate")))'],
  [
    "an entry point that is a global",
    /`evaluate` to be a function/,
    '(module (global (export "evaluate") i32 (i32.const 0)))',
  ],
  [
    "a function that WASI does not have",
    /imports of the ABI, got `wasi_snapshot_preview1` `sock_open`/,
    '(module (import "wasi_snapshot_preview1" "sock_open" (func (param i32 i32 i32) (result i32))))',
  ],
  [
    "another WASI",
    /imports of the ABI, got `wasi_unstable` `clock_time_get`/,
    '(module (import "wasi_unstable" "clock_time_get" (func (param i32 i64 i32) (result i32))))',
  ],
  [
    "a request over HTTP",
    /`extism:host\/env` `http_request`/,
    '(module (import "extism:host/env" "http_request" (func (param i64 i64) (result i64))))',
  ],
  [
    "a name every object has",
    /`extism:host\/env` `constructor`/,
    '(module (import "extism:host/env" "constructor" (func)))',
  ],
  [
    "an import of another type",
    /import `alloc` to have its type/,
    '(module (import "extism:host/env" "alloc" (func (param f64) (result externref))))'.replace("externref", "f64"),
  ],
  ["an imported memory", /imports of the ABI/, '(module (import "env" "memory" (memory 1)))'],
  ["an imported global for the fuel", /imports of the ABI/, '(module (import "host" "fuel" (global (mut i64))))'],
  ["the fuel global by its number", /a global below 1, got 1/, globalBomb()],
  ["a memory beyond the cap", /at most 16 pages of memory, got 17/, moduleOf("", abstain, "(memory 17)")],
  ["a shared memory", /not shared/, moduleOf("", abstain, "(memory 1 1 shared)")],
  [
    "a memory of 64 bits",
    /limits of 32 bits/,
    '(module (memory i64 1) (func (export "evaluate") (result i32) (i32.const 0)))',
  ],
  [
    "two memories",
    /at most 1 memories/,
    '(module (memory 1) (memory 1) (func (export "evaluate") (result i32) (i32.const 0)))',
  ],
  [
    "two tables",
    /at most 1 tables/,
    '(module (table 1 funcref) (table 1 funcref) (func (export "evaluate") (result i32) (i32.const 0)))',
  ],
  [
    "a vast table",
    /at most 10000 entries/,
    '(module (table 10000000 funcref) (func (export "evaluate") (result i32) (i32.const 0)))',
  ],
  [
    "a table of foreign references",
    /a table of functions/,
    '(module (table 1 externref) (func (export "evaluate") (result i32) (i32.const 0)))',
  ],
  [
    "a table that changes",
    /known instruction, got 0xd0/,
    '(module (table 1 funcref) (func (export "evaluate") (result i32) (table.grow (ref.null func) (i32.const 1))))',
  ],
  [
    "a passive element segment",
    /an active segment of functions/,
    '(module (table 1 funcref) (elem func) (func (export "evaluate") (result i32) (i32.const 0)))',
  ],
  [
    "a passive data segment",
    /an active segment of data/,
    '(module (memory 1) (data "secret") (func (export "evaluate") (result i32) (data.drop 0) (i32.const 0)))',
  ],
  [
    "a data segment outside its memory",
    /segment outside/,
    '(module (memory 1) (data (i32.const 65536) "x") (func (export "evaluate") (result i32) (i32.const 0)))',
  ],
  [
    "SIMD",
    /known instruction, got 0xfd/,
    '(module (func (export "evaluate") (result i32) (i32x4.extract_lane 0 (v128.const i32x4 1 2 3 4))))',
  ],
  [
    "atomics",
    /known instruction, got 0xfe/,
    '(module (memory 1) (func (export "evaluate") (result i32) (i32.atomic.load (i32.const 0))))',
  ],
  ["tail calls", /known instruction, got 0x12/, '(module (func $a (export "evaluate") (result i32) (return_call $a)))'],
  [
    "exceptions",
    /known section|known instruction/,
    '(module (tag $t) (func (export "evaluate") (result i32) (throw $t)))',
  ],
  [
    "a start function that never ends",
    /fuel_exhausted/,
    '(module (func $s (loop $l (br $l))) (start $s) (func (export "evaluate") (result i32) (i32.const 0)))',
  ],
  [
    "an initializer that traps",
    /trap/,
    '(module (func (export "_initialize") unreachable) (func (export "evaluate") (result i32) (i32.const 0)))',
  ],
  [
    "a start function of the host",
    /start function to be/,
    `(module ${imports} (start $input_length) (func (export "evaluate") (result i32) (i32.const 0)))`,
  ],
  ["a vast function", /at most 131072 bytes in a function/, binaryOf(repeat([0x41, 0, 0x1a], 60_000))],
  [
    "deep nesting",
    /at most 1024 blocks inside one another/,
    binaryOf([...repeat([0x02, 0x40], 2_000), ...repeat([0x0b], 2_000)]),
  ],
  [
    "a br_table of 50,000 labels",
    /at most 4096 labels/,
    binaryOf([0x41, 0, 0x0e, ...leb(50_000), ...repeat([0], 50_001)]),
  ],
  ["a thousand operands", /at most 1024 operands/, binaryOf([...repeat([0x41, 0], 1_100), ...repeat([0x1a], 1_099)])],
  [
    "ten thousand loops",
    /at most 4096 loops in a function/,
    binaryOf([...repeat([0x03, 0x40, 0x0b], 10_000), 0x41, 0]),
  ],
  ["a billion locals", /at most 1024 locals/, localBomb()],
  ["a hundred thousand functions", /at most 16384 functions/, binaryOf([0x41, 0], 100_000)],
  ["a function of the wrong type", /engine refuses/, '(module (func (export "evaluate") (result i32) (i64.const 0)))'],
  [
    "a name that is not UTF-8",
    /name in UTF-8/,
    Uint8Array.of(0, 0x61, 0x73, 0x6d, 1, 0, 0, 0, 1, 4, 1, 0x60, 0, 0, 2, 6, 1, 1, 0xff, 1, 0x61, 0),
  ],
  ["nothing", /more bytes, got the end/, new Uint8Array()],
  ["a component", /core module of version 1/, Uint8Array.of(0, 0x61, 0x73, 0x6d, 0x0d, 0, 1, 0)],
];

function repeat(bytes: readonly number[], times: number): number[] {
  return Array.from({ length: times }, () => bytes).flat();
}

/** `global.get 0` of a module with one global, made to name the next, which the meter adds. */
function globalBomb(): Uint8Array {
  const bytes = assemble(
    '(module (global (mut i64) (i64.const 7)) (func (export "evaluate") (result i32) (global.set 0 (i64.const 99)) (i32.const 0)))',
  );
  const at = bytes.findIndex((byte, index) => byte === 0x24 && bytes[index + 1] === 0 && bytes[index + 2] === 0x41);
  if (at === -1) throw new TypeError("globalBomb: expected the global to be set");
  return bytes.with(at + 1, 1);
}

function localBomb(): Uint8Array {
  // One group of 2^30 locals.
  const code = [0x0a, 0x0c, 0x01, 0x0a, 0x01, 0x80, 0x80, 0x80, 0x80, 0x04, 0x7f, 0x41, 0x00, 0x0b];
  const exported = [0x07, 0x0c, 0x01, 0x08, ...new TextEncoder().encode("evaluate"), 0x00, 0x00];
  return Uint8Array.of(0, 0x61, 0x73, 0x6d, 1, 0, 0, 0, 1, 5, 1, 0x60, 0, 1, 0x7f, 3, 2, 1, 0, ...exported, ...code);
}
