import { expect } from "chai";
import { encodeInput, pluginInput } from "../../../core/plugin/abi.ts";
import { compileModule } from "../../../core/plugin/compiled-module.ts";
import { PluginMachine } from "../../../core/plugin/plugin-machine.ts";
import { makeAction } from "../../support/action.ts";
import { replaceCode } from "../../support/changed-module.ts";
import { rejection } from "../../support/ledger-world.ts";
import { openPool, portsOfOneThread } from "../../support/plugin-port.ts";
import { abstain, assemble, moduleOf, openSample } from "../../support/wasm-plugin.ts";

const fuel = 1_000_000;
const empty = new Uint8Array();
const allow = '{"decision":"allow","findings":[]}';

async function machineOf(text: string | Uint8Array, settings = {}, memoryPages = 16): Promise<PluginMachine> {
  const bytes = typeof text === "string" ? assemble(text) : text;
  return PluginMachine.open(await compileModule({ bytes, memoryPages, fuel, settings }));
}

/** Answers with the block whose address `block` computes. */
function showing(block: string, more: string): string {
  const show = `(local.set $out ${block}) (call $output_set (local.get $out) (call $length (local.get $out))) (return (i32.const 0))`;
  return moduleOf(show, abstain, `${more} (memory 1)`);
}

const textOf = (bytes: Uint8Array): string => Buffer.from(bytes).toString();
const oneByte = (byte: number): string =>
  `(local.set $j (call $alloc (i64.const 1))) (call $store_u8 (local.get $j) (i32.const ${byte}))`;

describe("what Extism offers a plugin", () => {
  it("has the settings by their names: a text as it is, anything else as JSON, and nothing for other names", async () => {
    const get = '(import "extism:host/env" "config_get" (func $config_get (param i64) (result i64)))';
    const settings = { a: "text", b: [1, { c: null }], "1": true };
    for (const [name, shown] of [
      ["a", "text"],
      ["b", '[1,{"c":null}]'],
      ["1", "true"],
    ] as const) {
      const text = showing(
        `(block (result i64) ${oneByte(name.charCodeAt(0))} (call $config_get (local.get $j)))`,
        get,
      );
      expect(textOf((await machineOf(text, settings)).call(empty, fuel))).to.equal(shown);
    }
    const missing = `${oneByte(0x7a)} (if (i64.ne (call $config_get (local.get $j)) (i64.const 0)) (then unreachable))`;
    expect(textOf((await machineOf(moduleOf(missing, allow, `${get} (memory 1)`))).call(empty, fuel))).to.equal(allow);
  });

  it("keeps a variable for the rest of its call, as it was when it was set", async () => {
    const more = `(import "extism:host/env" "var_get" (func $var_get (param i64) (result i64)))
      (import "extism:host/env" "var_set" (func $var_set (param i64 i64)))`;
    const body = `${oneByte(0x41)} (call $var_set (local.get $j) (local.get $j))
      (local.set $out (call $alloc (i64.const 1))) (call $store_u8 (local.get $out) (i32.const 0x41))
      (call $store_u8 (local.get $j) (i32.const 0x42))`;
    const machine = await machineOf(showing(`(block (result i64) ${body} (call $var_get (local.get $out)))`, more));
    for (let round = 0; round < 3; round++) expect(textOf(machine.call(empty, fuel))).to.equal("A");
  });

  it("takes the bytes that a block has at the end of the call, as long as the plugin said", async () => {
    const body = `(local.set $out (call $alloc (i64.const 8))) (call $output_set (i64.add (local.get $out) (i64.const 1)) (i64.const 2))
      (call $store_u64 (local.get $out) (i64.const 0x4847464544434241)) (return (i32.const 0))`;
    expect(textOf((await machineOf(moduleOf(body))).call(empty, fuel))).to.equal("BC");
  });

  it("has a clock at 0, zeros for random bytes, no arguments, no environment and no files", async () => {
    const more = `
      (import "wasi_snapshot_preview1" "clock_time_get" (func $clock (param i32 i64 i32) (result i32)))
      (import "wasi_snapshot_preview1" "random_get" (func $random (param i32 i32) (result i32)))
      (import "wasi_snapshot_preview1" "environ_sizes_get" (func $environ (param i32 i32) (result i32)))
      (import "wasi_snapshot_preview1" "args_sizes_get" (func $args (param i32 i32) (result i32)))
      (import "wasi_snapshot_preview1" "fd_prestat_get" (func $prestat (param i32 i32) (result i32)))
      (import "wasi_snapshot_preview1" "path_open" (func $open (param i32 i32 i32 i32 i32 i64 i64 i32 i32) (result i32)))
      (memory 1)`;
    const set = "(memory.fill (i32.const 0) (i32.const 255) (i32.const 64))";
    const zero = (at: number): string => `(if (i64.ne (i64.load (i32.const ${at})) (i64.const 0)) (then unreachable))`;
    const is = (value: number, call: string): string => `(if (i32.ne ${call} (i32.const ${value})) (then unreachable))`;
    const body = [
      set,
      is(0, "(call $clock (i32.const 1) (i64.const 1) (i32.const 0))"),
      zero(0),
      is(0, "(call $random (i32.const 8) (i32.const 8))"),
      zero(8),
      is(0, "(call $environ (i32.const 16) (i32.const 20))"),
      zero(16),
      is(0, "(call $args (i32.const 24) (i32.const 28))"),
      zero(24),
      is(8, "(call $prestat (i32.const 3) (i32.const 32))"),
      is(
        8,
        "(call $open (i32.const 3) (i32.const 0) (i32.const 0) (i32.const 1) (i32.const 0) (i64.const 0) (i64.const 0) (i32.const 0) (i32.const 40))",
      ),
    ].join(" ");
    expect(textOf((await machineOf(moduleOf(body, allow, more))).call(empty, fuel))).to.equal(allow);
  });

  it("reads an index of the table that is written long, as compilers do", async () => {
    const more = "(memory 1) (table 1 funcref) (elem (i32.const 0) $seven) (func $seven (result i32) (i32.const 7))";
    const body = "(if (i32.ne (call_indirect (result i32) (i32.const 0)) (i32.const 7)) (then unreachable))";
    const module = assemble(moduleOf(body, allow, `${more}`));
    const type = module[Buffer.from(module).indexOf(Buffer.from([0x41, 0, 0x11])) + 3] ?? 0;
    const zero = [0x80, 0x80, 0x80, 0x80, 0];
    const long = replaceCode(module, [
      [
        [0x11, type, 0, 0x41, 7],
        [0x11, type, ...zero, 0x41, 7],
      ],
    ]);
    expect(textOf((await machineOf(long)).call(empty, fuel))).to.equal(allow);
  });

  it("grows its memory by four pages without a new one, and in a new one beyond, each time from the same size", async () => {
    const grow = (pages: number): string =>
      moduleOf(
        `(if (i32.ne (memory.size) (i32.const 1)) (then unreachable)) (if (i32.ne (memory.grow (i32.const ${pages})) (i32.const 1)) (then unreachable))
        (if (i32.ne (memory.size) (i32.const ${pages + 1})) (then unreachable))
        (if (i32.load (i32.sub (i32.mul (memory.size) (i32.const 65536)) (i32.const 4))) (then unreachable))
        (i32.store (i32.sub (i32.mul (memory.size) (i32.const 65536)) (i32.const 4)) (i32.const 1))`,
        allow,
      );
    for (const [pages, isReady] of [
      [4, true],
      [5, false],
    ] as const) {
      const machine = await machineOf(grow(pages));
      for (let round = 0; round < 3; round++) {
        expect(textOf(machine.call(empty, fuel))).to.equal(allow);
        expect(machine.isReady).to.equal(isReady);
        await machine.prepare();
      }
    }
  });

  it("runs `_start` once at load where there is no initializer, and not where WASI is imported, as Extism does", async () => {
    const more = (imported: string): string =>
      `${imported} (memory 1) (global $g (mut i32) (i32.const 0)) (func (export "_start") (global.set $g (i32.add (global.get $g) (i32.const 1))))`;
    const clock = '(import "wasi_snapshot_preview1" "clock_time_get" (func $clock (param i32 i64 i32) (result i32)))';
    for (const [imported, times] of [
      ["", 1],
      [clock, 0],
    ] as const) {
      const body = `(if (i32.ne (global.get $g) (i32.const ${times})) (then unreachable))`;
      const machine = await machineOf(moduleOf(body, allow, more(imported)));
      expect(textOf(machine.call(empty, fuel))).to.equal(allow);
    }
  });

  it("gives the pool the input as it came, whatever a call on a slice wrote into it", async () => {
    const first = 281_474_976_710_656n;
    const body = `(if (i32.ne (call $input_load_u8 (i64.const 0)) (i32.const 123)) (then unreachable))
      (call $store_u8 (i64.const ${first}) (i32.const 0)) (local.set $i (i32.const 30000))
      (loop $l (br_if $l (local.tee $i (i32.sub (local.get $i) (i32.const 1)))))`;
    const pool = openPool(1);
    const { policy } = await openSample(moduleOf(body, allow), { ...portsOfOneThread, pool, sliceFuel: 10_000 });
    expect((await policy.settle(makeAction())).decision).to.equal("allow");
    await pool.close();
    const machine = await machineOf(moduleOf(body, allow));
    for (let round = 0; round < 2; round++) {
      expect(textOf(machine.call(encodeInput(pluginInput("{}", makeAction())), fuel))).to.equal(allow);
    }
  });

  it("[S35] refuses modules of more than 4 MiB before anything else reads them", async () => {
    const error = await rejection(machineOf(new Uint8Array(4_194_305)));
    expect(error.message).to.equal("expected at most 4194304 bytes in a module, got 4194305");
  });
});
