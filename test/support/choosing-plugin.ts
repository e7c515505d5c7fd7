import type { Redaction } from "../../core/action/policy.ts";
import { abstain, folderOf, imports, type PluginFiles } from "./wasm-plugin.ts";

/** A text, and what the plugin says of an action whose JSON holds it, once it ran this code. */
export type Choice = readonly [needle: string, verdict: string, code?: string];

/** The folder of a plugin that looks for texts in its input: the first that is there decides what it answers. */
export function choosingPlugin(name: string, choices: readonly Choice[], memoryPages = 1): PluginFiles {
  const memory = new Data();
  const branches = choices.map(
    ([needle, verdict, code = ""]) =>
      `(if (call $has ${memory.put(needle)}) (then ${code} (call $say ${memory.put(verdict)}) (return (i32.const 0))))`,
  );
  const silence = memory.put(abstain);
  return folderOf(
    name,
    `(module ${imports} (memory ${memoryPages}) (data (i32.const 0) "${memory.text}")
      (func $has (param $needle i32) (param $length i32) (result i32) (local $at i32) (local $same i32)
        (loop $next
          (local.set $same (i32.const 0))
          (block $differs (loop $more
            (if (i32.eq (local.get $same) (local.get $length)) (then (return (i32.const 1))))
            (br_if $differs (i32.ne
              (call $input_load_u8 (i64.extend_i32_u (i32.add (local.get $at) (local.get $same))))
              (i32.load8_u (i32.add (local.get $needle) (local.get $same)))))
            (local.set $same (i32.add (local.get $same) (i32.const 1)))
            (br $more)))
          (local.set $at (i32.add (local.get $at) (i32.const 1)))
          (br_if $next (i64.le_u
            (i64.extend_i32_u (i32.add (local.get $at) (local.get $length))) (call $input_length))))
        (i32.const 0))
      (func $say (param $from i32) (param $length i32) (local $out i64) (local $at i32)
        (local.set $out (call $alloc (i64.extend_i32_u (local.get $length))))
        (loop $more
          (call $store_u8 (i64.add (local.get $out) (i64.extend_i32_u (local.get $at)))
            (i32.load8_u (i32.add (local.get $from) (local.get $at))))
          (local.set $at (i32.add (local.get $at) (i32.const 1)))
          (br_if $more (i32.lt_u (local.get $at) (local.get $length))))
        (call $output_set (local.get $out) (i64.extend_i32_u (local.get $length))))
      (func (export "evaluate") (result i32)
        ${branches.join("\n")}
        (call $say ${silence})
        (i32.const 0)))`,
  );
}

/** The verdict of a plugin that only redacts. */
export function redacting(...redactions: readonly Redaction[]): string {
  return JSON.stringify({ decision: "abstain", findings: [], redactions });
}

/** Texts one after the other at the start of a module's memory. */
class Data {
  text = "";
  #length = 0;

  /** Where the text stands and how long it is, as two operands. */
  put(text: string): string {
    const bytes = Array.from(new TextEncoder().encode(text));
    const operands = `(i32.const ${this.#length}) (i32.const ${bytes.length})`;
    this.text += bytes.map((byte) => `\\${byte.toString(16).padStart(2, "0")}`).join("");
    this.#length += bytes.length;
    return operands;
  }
}
