import type { BreachReason } from "../../core/plugin/breach.ts";
import { abstain, answerOf, binaryOf, moduleOf } from "./wasm-plugin.ts";

/** A module that turns what Extism and WASI offer against their host, and the way in which each call of it ends. */
export interface HostileExtism {
  readonly name: string;
  readonly reason: BreachReason;
  readonly module: string | Uint8Array;
  /** The module that does so only where `when`, a condition in code, holds, and else answers as an ordinary plugin. */
  readonly text?: (when: string) => string;
}

const more = `
  (import "extism:host/env" "log_trace" (func $log_trace (param i64)))
  (import "extism:host/env" "config_get" (func $config_get (param i64) (result i64)))
  (import "extism:host/env" "var_get" (func $var_get (param i64) (result i64)))
  (import "extism:host/env" "var_set" (func $var_set (param i64 i64)))
  (import "wasi_snapshot_preview1" "fd_write" (func $fd_write (param i32 i32 i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "random_get" (func $random_get (param i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "clock_time_get" (func $clock_time_get (param i32 i64 i32) (result i32)))
  (import "wasi_snapshot_preview1" "proc_exit" (func $proc_exit (param i32)))
  (import "wasi_snapshot_preview1" "proc_raise" (func $proc_raise (param i32) (result i32)))`;

function hostile(name: string, reason: BreachReason, body: string, rest = "(memory 1)"): HostileExtism {
  const all = `${more} ${rest}`;
  const text = (when: string): string =>
    moduleOf(`(if ${when} (then ${body} ${answerOf(abstain)} (return (i32.const 0))))`, abstain, all);
  return { name, reason, module: moduleOf(body, abstain, all), text };
}

/** Runs code again and again. */
function endless(body: string): string {
  return `(loop $l ${body} (br $l))`;
}

/** A block of the host with this many bytes, `$out`. */
function block(bytes: number): string {
  return `(local.set $out (call $alloc (i64.const ${bytes})))`;
}

/** Ends at once where an earlier call left something behind, and else leaves it and traps. */
function remembering(seen: string, leave: string): string {
  return `(if ${seen} (then (return (i32.const 0)))) ${leave} unreachable`;
}

function repeat(bytes: readonly number[]): number[] {
  return Array.from({ length: 1_000 }, () => bytes).flat();
}

const key = `${block(1)} (call $store_u8 (local.get $out) (i32.const 107))`;
const newKey = `${block(8)} (local.set $j (i64.add (local.get $j) (i64.const 1))) (call $store_u64 (local.get $out) (local.get $j))`;

/** Modules that load, and fail when they are called. The settings of their calls hold `k`, 1,000 bytes long. */
export const hostileExtism: readonly HostileExtism[] = [
  hostile("64 MiB of host memory, again and again", "host_call", endless("(drop (call $alloc (i64.const 67108864)))")),
  hostile("32,768 blocks", "host_call", endless("(drop (call $alloc (i64.const 1)))")),
  hostile("32,768 blocks of nothing", "host_call", endless("(drop (call $alloc (i64.const 0)))")),
  hostile("blocks that are freed at once", "host_call", endless("(call $free (call $alloc (i64.const 1)))")),
  hostile("a block beyond all memory", "fuel_exhausted", "(drop (call $alloc (i64.const 281474976710656)))"),
  hostile("a block of the least length", "host_call", "(drop (call $alloc (i64.const -9223372036854775808)))"),
  hostile(
    "freeing every block there could be",
    "fuel_exhausted",
    endless("(local.set $j (i64.add (local.get $j) (i64.const 281474976710656))) (call $free (local.get $j))"),
  ),
  hostile(
    "a byte left in the engine's own block",
    "trap",
    remembering("(call $load_u8 (i64.const 0))", "(call $store_u8 (i64.const 0) (i32.const 7))"),
  ),
  hostile(
    "the engine's own block freed",
    "trap",
    remembering("(i64.ne (call $length (i64.const 0)) (i64.const 1))", "(call $free (i64.const 0))"),
  ),
  hostile(
    "a block of output that is too large",
    "output_cap",
    `${block(300_000)} (call $output_set (local.get $out) (i64.const 300000))`,
  ),
  hostile(
    "output beyond its block",
    "host_call",
    `${block(64)} (call $output_set (i64.add (local.get $out) (i64.const 8)) (i64.const 64))`,
  ),
  hostile(
    "output of a block that is not there",
    "host_call",
    "(call $output_set (i64.const -281474976710656) (i64.const 1))",
  ),
  hostile("one vast log", "log_cap", `${block(1_000_000)} (call $log_trace (local.get $out))`),
  hostile(
    "logs on every level",
    "log_cap",
    `${block(64)} ${endless("(call $log_trace (local.get $out)) (call $log_info (local.get $out))")}`,
  ),
  hostile("an error beside an answer", "plugin_error", `${block(8)} (call $error_set (local.get $out))`),
  hostile(
    "new variables without end",
    "host_call",
    endless(`${newKey} (call $var_set (local.get $out) (local.get $out))`),
  ),
  hostile(
    "one variable written over and over with all it may hold",
    "host_call",
    `${block(262_144)} (local.set $j (local.get $out)) ${key} ${endless("(call $var_set (local.get $out) (local.get $j))")}`,
  ),
  hostile(
    "a variable left behind",
    "trap",
    `${key} ${remembering("(i64.ne (call $var_get (local.get $out)) (i64.const 0))", "(call $var_set (local.get $out) (local.get $out))")}`,
  ),
  hostile(
    "reading a variable without end",
    "host_call",
    `${key} (call $var_set (local.get $out) (local.get $out)) ${endless("(drop (call $var_get (local.get $out)))")}`,
  ),
  hostile(
    "reading a setting without end",
    "host_call",
    `${key} ${endless("(drop (call $config_get (local.get $out)))")}`,
  ),
  hostile(
    "calling its own entry",
    "call_depth",
    "(drop (call_indirect (result i32) (i32.const 0)))",
    "(memory 1) (table 1 funcref) (elem (i32.const 0) 21)",
  ),
  hostile("ending the process", "host_call", "(call $proc_exit (i32.const 0))"),
  hostile("raising a signal", "host_call", "(drop (call $proc_raise (i32.const 9)))"),
  hostile(
    "writing to a stream without end",
    "log_cap",
    `(i32.store (i32.const 4) (i32.const 64)) ${endless("(drop (call $fd_write (i32.const 1) (i32.const 0) (i32.const 1) (i32.const 8)))")}`,
  ),
  hostile(
    "writing nothing to a stream without end",
    "fuel_exhausted",
    endless("(drop (call $fd_write (i32.const 2) (i32.const 0) (i32.const 1) (i32.const 8)))"),
  ),
  hostile(
    "writing 4 GiB to a stream",
    "log_cap",
    "(i32.store (i32.const 4) (i32.const -1)) (drop (call $fd_write (i32.const 1) (i32.const 0) (i32.const 1) (i32.const 8)))",
  ),
  hostile(
    "four thousand million vectors",
    "host_call",
    "(drop (call $fd_write (i32.const 1) (i32.const 0) (i32.const -1) (i32.const 8)))",
  ),
  hostile(
    "vectors outside its memory",
    "host_call",
    "(drop (call $fd_write (i32.const 1) (i32.const -8) (i32.const 1) (i32.const 8)))",
  ),
  hostile("4 GiB of random bytes", "fuel_exhausted", "(drop (call $random_get (i32.const 0) (i32.const -1)))"),
  hostile("random bytes outside its memory", "host_call", "(drop (call $random_get (i32.const 65530) (i32.const 64)))"),
  hostile(
    "looking at the clock without end",
    "fuel_exhausted",
    endless("(drop (call $clock_time_get (i32.const 0) (i64.const 1) (i32.const 0)))"),
  ),
  {
    name: "a thousand blocks inside one another, without end",
    reason: "fuel_exhausted",
    module: binaryOf([0x03, 0x40, ...repeat([0x02, 0x40]), ...repeat([0x0b]), 0x0c, 0, 0x0b, 0x41, 0]),
  },
  hostile(
    "a table of 10,000 entries",
    "fuel_exhausted",
    endless("(drop (call_indirect (result i64) (i32.const 9999)))"),
    "(memory 1) (table 10000 funcref) (elem (i32.const 9999) $input_length)",
  ),
  hostile("growing by nothing without end", "fuel_exhausted", endless("(drop (memory.grow (i32.const 0)))")),
  hostile(
    "bytes left behind the end of its memory",
    "trap",
    `(if (i32.eqz (local.get $i)) (then (if (i32.ne (memory.size) (i32.const 1)) (then (return (i32.const 0)))))) ${remembering("(i32.load (i32.const 200000))", "(i32.store (i32.const 200000) (i32.const 7)) (drop (memory.grow (i32.const 1)))")}`,
  ),
  {
    name: "a request over HTTP from the runtime of JavaScript",
    reason: "host_call",
    module: moduleOf(
      "(drop (call $http_request (i64.const 0) (i64.const 0)))",
      abstain,
      '(import "extism:host/env" "http_request" (func $http_request (param i64 i64) (result i64))) (memory 1) (func (export "__invoke"))',
    ),
  },
];
