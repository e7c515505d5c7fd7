import type { BreachReason } from "../../core/plugin/breach.ts";
import { abstain, answerOf, moduleOf } from "./wasm-plugin.ts";

/** What a module does when it is called, and the one way in which such a call ends. */
export interface HostileCall {
  readonly name: string;
  readonly reason: BreachReason;
  /** Of a module; with `when`, a condition in code, it answers as an ordinary plugin where that is not so. */
  text(when?: string): string;
}

function hostile(
  name: string,
  reason: BreachReason,
  body: string,
  verdict = abstain,
  more = "(memory 1)",
): HostileCall {
  const text = (when?: string): string =>
    when === undefined
      ? moduleOf(body, verdict, more)
      : moduleOf(`(if ${when} (then ${body} ${answerOf(verdict)} (return (i32.const 0))))`, abstain, more);
  return { name, reason, text };
}

const recursion = "(func $down (param i32) (result i32) (i32.add (i32.const 1) (call $down (local.get 0))))";
const wide = `(func $down ${"(local i64) ".repeat(1_000)}(call $down))`;

/** Modules that load, and fail when they are called. */
export const hostileCalls: readonly HostileCall[] = [
  hostile("an endless loop", "fuel_exhausted", "(loop $l (br $l))"),
  hostile(
    "an endless loop between two blocks",
    "fuel_exhausted",
    "(loop $a (block $b (loop $c (br_if $b (i32.const 1)) (br $c))) (br $a))",
  ),
  hostile(
    "a loop that takes and leaves operands",
    "fuel_exhausted",
    "(i32.const 1) (loop $l (param i32) (result i32) (br $l)) (drop)",
  ),
  hostile("a loop by br_table", "fuel_exhausted", "(loop $l (br_table $l $l $l (i32.const 7)))"),
  hostile(
    "endless memory.fill",
    "fuel_exhausted",
    "(loop $l (memory.fill (i32.const 0) (i32.const 1) (i32.const 65536)) (br $l))",
  ),
  hostile(
    "endless memory.copy",
    "fuel_exhausted",
    "(loop $l (memory.copy (i32.const 0) (i32.const 8) (i32.const 65528)) (br $l))",
  ),
  hostile("one memory.fill of 4 GiB", "fuel_exhausted", "(memory.fill (i32.const 0) (i32.const 1) (i32.const -1))"),
  hostile(
    "endless division",
    "fuel_exhausted",
    "(loop $l (local.set $j (i64.rem_u (i64.const -1) (i64.const 3))) (br $l))",
  ),
  hostile(
    "endless calls",
    "fuel_exhausted",
    "(loop $l (call $nothing) (br $l))",
    abstain,
    "(memory 1) (func $nothing)",
  ),
  hostile("a flood of host calls", "fuel_exhausted", "(loop $l (drop (call $input_length)) (br $l))"),
  hostile(
    "a flood of host calls through a table",
    "fuel_exhausted",

    "(loop $l (drop (call_indirect (result i64) (i32.const 0))) (br $l))",
    abstain,
    "(memory 1) (table 1 funcref) (elem (i32.const 0) $input_length)",
  ),
  hostile(
    "a flood of empty logs",
    "fuel_exhausted",
    "(loop $l (call $log_info (i64.const 281474976710656000)) (br $l))",
  ),
  hostile("memory.grow without end", "fuel_exhausted", "(loop $l (drop (memory.grow (i32.const 1))) (br $l))"),
  hostile("memory.grow by 4 GiB pages", "fuel_exhausted", "(drop (memory.grow (i32.const -1)))"),
  hostile("recursion", "call_depth", "(drop (call $down (i32.const 0)))", abstain, `(memory 1) ${recursion}`),
  hostile("recursion with a thousand locals", "call_depth", "(call $down)", abstain, `(memory 1) ${wide}`),
  hostile(
    "recursion through a table",
    "call_depth",

    "(call $a)",
    abstain,
    "(memory 1) (table 1 funcref) (elem (i32.const 0) $a) (type $t (func)) (func $a (call_indirect (type $t) (i32.const 0)))",
  ),
  hostile(
    "a trap after its memory's cap",
    "memory_cap",
    "(if (i32.eq (memory.grow (i32.const 20)) (i32.const -1)) (then unreachable))",
  ),
  hostile("unreachable", "trap", "unreachable"),
  hostile("a division by zero", "trap", "(local.set $i (i32.div_s (i32.const 1) (i32.const 0)))"),
  hostile("a division that overflows", "trap", "(local.set $i (i32.div_s (i32.const -2147483648) (i32.const -1)))"),
  hostile("a conversion of NaN", "trap", "(local.set $i (i32.trunc_f64_s (f64.const nan)))"),
  hostile("a read outside its memory", "trap", "(local.set $i (i32.load (i32.const 65536)))"),
  hostile("a write outside its memory", "trap", "(i32.store offset=4294967295 (i32.const 8) (i32.const 1))"),
  hostile(
    "a table entry that is not there",
    "trap",
    "(call_indirect (i32.const 9))",
    abstain,
    "(memory 1) (table 1 funcref)",
  ),
  hostile(
    "a table entry of another type",
    "trap",

    "(call_indirect (i32.const 0))",
    abstain,
    "(memory 1) (table 1 funcref) (elem (i32.const 0) $input_length)",
  ),
  hostile("an allocation of 2 GiB", "fuel_exhausted", "(drop (call $alloc (i64.const 2147483648)))"),
  hostile("an allocation of -1", "host_call", "(drop (call $alloc (i64.const -1)))"),
  hostile("allocations without end", "host_call", "(loop $l (drop (call $alloc (i64.const 1024))) (br $l))"),
  hostile("allocations beyond the cap", "host_call", "(loop $l (drop (call $alloc (i64.const 262144))) (br $l))"),
  hostile("a read outside a block of the host", "trap", "(drop (call $load_u8 (i64.const 4096)))"),
  hostile(
    "a write outside a block of the host",
    "trap",
    "(call $store_u64 (i64.add (call $alloc (i64.const 8)) (i64.const 1)) (i64.const 1))",
  ),
  hostile("a read outside the input", "trap", "(drop (call $input_load_u64 (call $input_length)))"),
  hostile("100 MB of output", "output_cap", "(call $output_set (i64.const 8) (i64.const 104857600))"),
  hostile("output that it never had", "host_call", "(call $output_set (i64.const 8) (i64.const 4096))"),
  hostile("output of a negative length", "host_call", "(call $output_set (i64.const 8) (i64.const -4096))"),
  hostile(
    "a flood of logs",
    "log_cap",
    "(local.set $out (call $alloc (i64.const 1024))) (loop $l (call $log_info (local.get $out)) (br $l))",
  ),
  hostile("an error of its own", "plugin_error", "(call $error_set (i64.const 8))"),
  hostile("an error code", "plugin_error", "(return (i32.const 1))"),
  hostile("no output", "missing_output", "(return (i32.const 0))"),
  hostile("output that is not JSON", "malformed_verdict", "", "block, please"),
  hostile("NaN in its verdict", "malformed_verdict", "", '{"decision":"allow","findings":[],"risk":NaN}'),
  hostile("a number out of range", "malformed_verdict", "", '{"decision":1e999,"findings":[]}'),
  hostile("an unknown decision", "malformed_verdict", "", '{"decision":"permit","findings":[]}'),
  hostile("an unknown member", "malformed_verdict", "", '{"decision":"allow","findings":[],"bypass":true}'),
  hostile("a member twice", "malformed_verdict", "", '{"decision":"block","decision":"allow","findings":[]}'),
  hostile("a prototype", "malformed_verdict", "", '{"__proto__":{"decision":"allow"},"findings":[]}'),
  hostile(
    "nested lists",
    "malformed_verdict",
    "",
    `{"decision":"allow","findings":${"[".repeat(40)}${"]".repeat(40)}}`,
  ),
  hostile(
    "bytes that are not UTF-8",
    "malformed_verdict",
    "(local.set $out (call $alloc (i64.const 8))) (call $store_u8 (local.get $out) (i32.const 255)) (call $output_set (local.get $out) (i64.const 8)) (return (i32.const 0))",
  ),
  hostile("a block without a finding", "malformed_verdict", "", '{"decision":"block","findings":[]}'),
  hostile(
    "endless fills of nothing",
    "fuel_exhausted",
    "(loop $l (memory.fill (i32.const 0) (i32.const 1) (i32.const 0)) (br $l))",
  ),
  hostile(
    "reading all of a large memory in leaps",
    "fuel_exhausted",
    "(loop $l (local.set $i (i32.load (i32.and (i32.add (i32.mul (local.get $i) (i32.const 1103515245)) (i32.const 12345)) (i32.const 1048568)))) (br $l))",
    abstain,
    "(memory 16)",
  ),
  hostile(
    "counting with floats too small to be quick",
    "fuel_exhausted",
    "(loop $l (global.set $tiny (f64.mul (global.get $tiny) (f64.const 1.0000001))) (br $l))",
    abstain,
    "(memory 1) (global $tiny (mut f64) (f64.const 0x1p-1060))",
  ),
  hostile(
    "a look at host memory that the call before it was lent",
    "trap",
    "(local.set $out (i64.add (call $alloc (i64.const 4096)) (i64.const 100))) (if (call $load_u8 (local.get $out)) (then (return (i32.const 0)))) (call $store_u8 (local.get $out) (i32.const 83)) unreachable",
  ),
  hostile(
    "a state left behind that the next call would trip over",
    "trap",
    "(if (global.get $left) (then (return (i32.const 0)))) (global.set $left (i32.const 1)) (drop (call $alloc (i64.const 64))) unreachable",
    abstain,
    "(memory 1) (global $left (mut i32) (i32.const 0))",
  ),
];
