import { expect } from "chai";
import { PluginBreach } from "../../../core/extension/breach.ts";
import { makeAction } from "../../support/action.ts";
import { rejection } from "../../support/ledger-world.ts";
import { abstain, assemble, binaryOf, imports, leb, moduleOf, openSample } from "../../support/wasm-plugin.ts";

const action = makeAction({ arguments: { path: "/etc/passwd" } });
const recursion = "(func $down (param i32) (result i32) (i32.add (i32.const 1) (call $down (local.get 0))))";
const wide = `(func $down ${"(local i64) ".repeat(1_000)}(call $down))`;

/** Modules that load, and the one way in which a call of each ends. */
const stopped: readonly (readonly [name: string, reason: string, module: string])[] = [
  ["an endless loop", "fuel_exhausted", moduleOf("(loop $l (br $l))")],
  [
    "an endless loop between two blocks",
    "fuel_exhausted",
    moduleOf("(loop $a (block $b (loop $c (br_if $b (i32.const 1)) (br $c))) (br $a))"),
  ],
  [
    "a loop that takes and leaves operands",
    "fuel_exhausted",
    moduleOf("(i32.const 1) (loop $l (param i32) (result i32) (br $l)) (drop)"),
  ],
  ["a loop by br_table", "fuel_exhausted", moduleOf("(loop $l (br_table $l $l $l (i32.const 7)))")],
  [
    "endless memory.fill",
    "fuel_exhausted",
    moduleOf("(loop $l (memory.fill (i32.const 0) (i32.const 1) (i32.const 65536)) (br $l))"),
  ],
  [
    "endless memory.copy",
    "fuel_exhausted",
    moduleOf("(loop $l (memory.copy (i32.const 0) (i32.const 8) (i32.const 65528)) (br $l))"),
  ],
  ["one memory.fill of 4 GiB", "fuel_exhausted", moduleOf("(memory.fill (i32.const 0) (i32.const 1) (i32.const -1))")],
  [
    "endless division",
    "fuel_exhausted",
    moduleOf("(loop $l (local.set $j (i64.rem_u (i64.const -1) (i64.const 3))) (br $l))"),
  ],
  [
    "endless calls",
    "fuel_exhausted",
    moduleOf("(loop $l (call $nothing) (br $l))", abstain, "(memory 1) (func $nothing)"),
  ],
  ["a flood of host calls", "fuel_exhausted", moduleOf("(loop $l (drop (call $input_length)) (br $l))")],
  [
    "a flood of host calls through a table",
    "fuel_exhausted",
    moduleOf(
      "(loop $l (drop (call_indirect (result i64) (i32.const 0))) (br $l))",
      abstain,
      "(memory 1) (table 1 funcref) (elem (i32.const 0) $input_length)",
    ),
  ],
  ["a flood of empty logs", "fuel_exhausted", moduleOf("(loop $l (call $log_info (i64.const 8)) (br $l))")],
  ["memory.grow without end", "fuel_exhausted", moduleOf("(loop $l (drop (memory.grow (i32.const 1))) (br $l))")],
  ["memory.grow by 4 GiB pages", "fuel_exhausted", moduleOf("(drop (memory.grow (i32.const -1)))")],
  ["recursion", "call_depth", moduleOf("(drop (call $down (i32.const 0)))", abstain, `(memory 1) ${recursion}`)],
  ["recursion with a thousand locals", "call_depth", moduleOf("(call $down)", abstain, `(memory 1) ${wide}`)],
  [
    "recursion through a table",
    "call_depth",
    moduleOf(
      "(call $a)",
      abstain,
      "(memory 1) (table 1 funcref) (elem (i32.const 0) $a) (type $t (func)) (func $a (call_indirect (type $t) (i32.const 0)))",
    ),
  ],
  [
    "a trap after its memory's cap",
    "memory_cap",
    moduleOf("(if (i32.eq (memory.grow (i32.const 20)) (i32.const -1)) (then unreachable))"),
  ],
  ["unreachable", "trap", moduleOf("unreachable")],
  ["a division by zero", "trap", moduleOf("(local.set $i (i32.div_s (i32.const 1) (i32.const 0)))")],
  ["a division that overflows", "trap", moduleOf("(local.set $i (i32.div_s (i32.const -2147483648) (i32.const -1)))")],
  ["a conversion of NaN", "trap", moduleOf("(local.set $i (i32.trunc_f64_s (f64.const nan)))")],
  ["a read outside its memory", "trap", moduleOf("(local.set $i (i32.load (i32.const 65536)))")],
  ["a write outside its memory", "trap", moduleOf("(i32.store offset=4294967295 (i32.const 8) (i32.const 1))")],
  [
    "a table entry that is not there",
    "trap",
    moduleOf("(call_indirect (i32.const 9))", abstain, "(memory 1) (table 1 funcref)"),
  ],
  [
    "a table entry of another type",
    "trap",
    moduleOf(
      "(call_indirect (i32.const 0))",
      abstain,
      "(memory 1) (table 1 funcref) (elem (i32.const 0) $input_length)",
    ),
  ],
  ["an allocation of 2 GiB", "fuel_exhausted", moduleOf("(drop (call $alloc (i64.const 2147483648)))")],
  ["an allocation of -1", "host_call", moduleOf("(drop (call $alloc (i64.const -1)))")],
  ["allocations without end", "host_call", moduleOf("(loop $l (drop (call $alloc (i64.const 1))) (br $l))")],
  ["allocations beyond the cap", "host_call", moduleOf("(loop $l (drop (call $alloc (i64.const 262144))) (br $l))")],
  ["a read outside the host's memory", "host_call", moduleOf("(drop (call $load_u8 (i64.const 4096)))")],
  ["a read before the host's memory", "host_call", moduleOf("(drop (call $load_u8 (i64.const -1)))")],
  [
    "a write outside the host's memory",
    "host_call",
    moduleOf("(call $store_u64 (i64.const 4611686018427387904) (i64.const 1))"),
  ],
  ["a read outside the input", "host_call", moduleOf("(drop (call $input_load_u64 (call $input_length)))")],
  ["100 MB of output", "output_cap", moduleOf("(call $output_set (i64.const 8) (i64.const 104857600))")],
  ["output that it never had", "host_call", moduleOf("(call $output_set (i64.const 8) (i64.const 4096))")],
  ["output of a negative length", "host_call", moduleOf("(call $output_set (i64.const 8) (i64.const -4096))")],
  [
    "a flood of logs",
    "log_cap",
    moduleOf("(local.set $out (call $alloc (i64.const 1024))) (loop $l (call $log_info (local.get $out)) (br $l))"),
  ],
  ["an error of its own", "plugin_error", moduleOf("(call $error_set (i64.const 8))")],
  ["an error code", "plugin_error", `(module ${imports} (func (export "evaluate") (result i32) (i32.const 1)))`],
  ["no output", "missing_output", `(module (func (export "evaluate") (result i32) (i32.const 0)))`],
  ["output that is not JSON", "malformed_verdict", moduleOf("", "block, please")],
  ["NaN in its verdict", "malformed_verdict", moduleOf("", '{"decision":"allow","findings":[],"risk":NaN}')],
  ["a number out of range", "malformed_verdict", moduleOf("", '{"decision":1e999,"findings":[]}')],
  ["an unknown decision", "malformed_verdict", moduleOf("", '{"decision":"permit","findings":[]}')],
  ["an unknown member", "malformed_verdict", moduleOf("", '{"decision":"allow","findings":[],"bypass":true}')],
  ["a member twice", "malformed_verdict", moduleOf("", '{"decision":"block","decision":"allow","findings":[]}')],
  ["a prototype", "malformed_verdict", moduleOf("", '{"__proto__":{"decision":"allow"},"findings":[]}')],
  [
    "nested lists",
    "malformed_verdict",
    moduleOf("", `{"decision":"allow","findings":${"[".repeat(40)}${"]".repeat(40)}}`),
  ],
  [
    "bytes that are not UTF-8",
    "malformed_verdict",
    moduleOf("(drop (call $alloc (i64.const 8)))", abstain).replace("(i32.const 123)", "(i32.const 255)"),
  ],
  ["a block without a finding", "malformed_verdict", moduleOf("", '{"decision":"block","findings":[]}')],
];

/** Modules that are not loaded, and what their author is told. */
const refused: readonly (readonly [name: string, said: RegExp, module: string | Uint8Array])[] = [
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
    "WASI",
    /imports of the ABI, got `wasi_snapshot_preview1` `clock_time_get`/,
    '(module (import "wasi_snapshot_preview1" "clock_time_get" (func (param i32 i64 i32) (result i32))))',
  ],
  [
    "a request over HTTP",
    /`extism:host\/env` `http_request`/,
    '(module (import "extism:host/env" "http_request" (func (param i64 i64) (result i64))))',
  ],
  [
    "variables that outlive a call",
    /`extism:host\/env` `var_set`/,
    '(module (import "extism:host/env" "var_set" (func (param i64 i64))))',
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
    '(module (table 1 funcref) (func (export "evaluate") (result i32) (table.grow (ref.null func) (i32.const 1))))'.replace(
      "(ref.null func) (i32.const 1)",
      "(ref.null func) (i32.const 1)",
    ),
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
    /at most 128 blocks inside one another/,
    binaryOf([...repeat([0x02, 0x40], 2_000), ...repeat([0x0b], 2_000)]),
  ],
  [
    "a br_table of 50,000 labels",
    /at most 4096 labels/,
    binaryOf([0x41, 0, 0x0e, ...leb(50_000), ...repeat([0], 50_001)]),
  ],
  ["a thousand operands", /at most 1024 operands/, binaryOf([...repeat([0x41, 0], 1_100), ...repeat([0x1a], 1_099)])],
  ["a billion locals", /at most 1024 locals/, localBomb()],
  ["a hundred thousand functions", /at most 10000 functions/, binaryOf([0x41, 0], 100_000)],
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
  expect(at).to.be.greaterThan(0);
  return bytes.with(at + 1, 1);
}

function localBomb(): Uint8Array {
  // One group of 2^30 locals.
  const code = [0x0a, 0x0c, 0x01, 0x0a, 0x01, 0x80, 0x80, 0x80, 0x80, 0x04, 0x7f, 0x41, 0x00, 0x0b];
  const exported = [0x07, 0x0c, 0x01, 0x08, ...new TextEncoder().encode("evaluate"), 0x00, 0x00];
  return Uint8Array.of(0, 0x61, 0x73, 0x6d, 1, 0, 0, 0, 1, 5, 1, 0x60, 0, 1, 0x7f, 3, 2, 1, 0, ...exported, ...code);
}

const mostGrowth = 256 * 1_048_576;

describe("hostile plugins", () => {
  const before = process.memoryUsage().rss;

  after("have not made the process grow", () => {
    const grown = process.memoryUsage().rss - before;
    process.stdout.write(`      ${stopped.length + refused.length} modules: the process grew by ${grown >> 20} MiB\n`);
    expect(grown).to.be.lessThan(mostGrowth);
  });

  for (const [name, reason, module] of stopped) {
    it(`[S29, S35] stops ${name}: ${reason}`, async () => {
      const { policy, breaches } = await openSample(module);
      const started = performance.now();
      for (let round = 0; round < 3; round++) {
        expect(() => policy.evaluate(action))
          .to.throw(PluginBreach)
          .with.property("reason", reason);
      }
      expect(performance.now() - started).to.be.lessThan(5_000);
      expect(breaches).to.deep.equal([reason, reason, reason]);
    });
  }

  for (const [name, said, module] of refused) {
    it(`[S35] does not load ${name}`, async () => {
      const error = await rejection(openSample(module));
      expect(error).to.have.property("code", "PLUGIN_INVALID");
      expect(error.message).to.match(said);
    });
  }
});
