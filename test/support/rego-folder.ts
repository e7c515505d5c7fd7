import { assemble } from "./wasm-plugin.ts";

/** Texts in an action and what the module does about each; where none of them is there, it permits. */
const answers: Readonly<Record<string, string>> = {
  "a secret": `[{"result":{"decision":"block","reasons":[{"id":"no-secret","message":"secrets stay here","severity":"critical"}]}}]`,
  "a question": `[{"result":{"decision":"review","reasons":[{"id":"asks","message":"a person decides","approvals":2}]}}]`,
  "no reason": `[{"result":{"decision":"block"}}]`,
  "a refusal": `[{"result":false}]`,
  "a hole": "[]",
  "a number": `[{"result":3}]`,
  "a half": `[{"result":`,
  "a stranger": `[{"result":{"decision":"allow","because":"x"}}]`,
  "a control": `[{"result":{"decision":"block","reasons":[{"id":"a","message":"x\\u202ey"}]}}]`,
  "a pair": `[{"result":true},{"result":true}]`,
};
const deeds: Readonly<Record<string, string>> = {
  "an abort": "(call $opa_abort (i32.const 0))",
  "a loop": "(loop $on (br $on))",
  "a trap": "(unreachable)",
  "a dive": "(call $dive)",
  "a flood":
    "(loop $on (drop (memory.grow (i32.const 1))) (br_if $on (i32.lt_u (memory.size) (i32.const 60)))) (drop (call $opa_malloc (i32.const 9000000)))",
  "a growth": "(drop (memory.grow (i32.const 20)))",
  "an error": "(return (i32.const 7))",
};

export interface RegoSample {
  readonly builtins?: string;
  readonly version?: number;
  /** Stands beside the functions. */
  readonly more?: string;
}

/**
 * A module with OPA's interface. It looks for texts in the action, as it has no parser, and refuses what it is asked second
 * in one state of its memory.
 */
export function regoModule({ builtins = "{}", version = 1, more = "" }: RegoSample = {}): Uint8Array {
  const texts = new Map<string, number>();
  let end = 1_024;
  const place = (text: string): number => {
    const at = texts.get(text) ?? end;
    if (!texts.has(text)) {
      texts.set(text, at);
      end += text.length + 1;
    }
    return at;
  };
  const found = (needle: string): string => `(call $holds (i32.const ${place(needle)}) (i32.const ${needle.length}))`;
  const branches = [
    ...Object.entries(answers).map(
      ([needle, answer]) => `(if ${found(needle)} (then (i32.store (i32.const 12) (i32.const ${place(answer)}))))`,
    ),
    ...Object.entries(deeds).map(([needle, code]) => `(if ${found(needle)} (then ${code}))`),
  ];
  const [yes, no] = [place(`[{"result":true}]`), place(`[{"result":false}]`)];
  const tables = [place(builtins), place(`{"gateway/decision":0}`)];
  const data = [...texts].map(([text, at]) => `(data (i32.const ${at}) "${escaped(text)}\\00")`);
  return assemble(`(module
    (import "env" "memory" (memory 1))
    (import "env" "opa_abort" (func $opa_abort (param i32)))
    ${more}
    (global (export "opa_wasm_abi_version") i32 (i32.const ${version}))
    (global $heap (mut i32) (i32.const 32768))
    ${data.join("\n")}
    (func $opa_malloc (export "opa_malloc") (param $size i32) (result i32) (local $at i32)
      (local.set $at (global.get $heap))
      (global.set $heap (i32.add (local.get $at) (local.get $size)))
      (if (i32.gt_u (global.get $heap) (i32.mul (memory.size) (i32.const 65536)))
        (then (if (i32.eq (i32.const -1)
            (memory.grow (i32.add (i32.const 1) (i32.shr_u (local.get $size) (i32.const 16)))))
          (then (unreachable)))))
      (local.get $at))
    (func (export "opa_json_parse") (param $at i32) (param $length i32) (result i32)
      (i32.store (i32.const 4) (local.get $length))
      (select (local.get $at) (i32.const 0) (i32.eq (i32.load8_u (local.get $at)) (i32.const 123))))
    (func (export "opa_json_dump") (param i32) (result i32) (local.get 0))
    (func (export "opa_eval_ctx_new") (result i32) (i32.const 512))
    (func (export "opa_eval_ctx_set_input") (param i32 i32) (i32.store (i32.const 8) (local.get 1)))
    (func (export "opa_eval_ctx_set_data") (param i32 i32))
    (func (export "opa_eval_ctx_set_entrypoint") (param i32 i32))
    (func (export "opa_eval_ctx_get_result") (param i32) (result i32) (i32.load (i32.const 12)))
    (func (export "builtins") (result i32) (i32.const ${tables[0]}))
    (func (export "entrypoints") (result i32) (i32.const ${tables[1]}))
    (func $holds (param $needle i32) (param $length i32) (result i32) (local $at i32) (local $end i32) (local $same i32)
      (local.set $at (i32.load (i32.const 8)))
      (local.set $end (i32.sub (i32.add (local.get $at) (i32.load (i32.const 4))) (local.get $length)))
      (loop $next
        (if (i32.gt_u (local.get $at) (local.get $end)) (then (return (i32.const 0))))
        (local.set $same (i32.const 0))
        (block $differs
          (loop $on
            (br_if $differs (i32.ne
              (i32.load8_u (i32.add (local.get $at) (local.get $same)))
              (i32.load8_u (i32.add (local.get $needle) (local.get $same)))))
            (local.set $same (i32.add (local.get $same) (i32.const 1)))
            (br_if $on (i32.lt_u (local.get $same) (local.get $length))))
          (return (i32.const 1)))
        (local.set $at (i32.add (local.get $at) (i32.const 1)))
        (br $next))
      (i32.const 0))
    (func $dive (call $dive))
    (func $eval (export "eval") (param $context i32) (result i32)
      (i32.store (i32.const 12) (select (i32.const ${no}) (i32.const ${yes}) (i32.load (i32.const 16))))
      ${branches.join("\n")}
      (i32.store (i32.const 16) (i32.const 1))
      (i32.const 0)))`);
}

function escaped(text: string): string {
  return text.replace(/["\\]/g, (character) => `\\${character}`);
}

/** A folder with that module, as an unpacked OPA bundle, some of it otherwise. */
export function regoFiles(
  changed: Readonly<Record<string, string | Uint8Array>> = {},
): Readonly<Record<string, string | Uint8Array>> {
  return {
    "engine.yaml": `apiVersion: gateway/v1
kind: PolicyEngine
engine: rego
metadata: { name: notes, version: 1.0.0, title: Notes in Rego }
`,
    "policy.wasm": regoModule(),
    "data.json": `{"roles":["operator"]}`,
    ".manifest": `{"revision":"","roots":[""],"wasm":[{"entrypoint":"gateway/decision","module":"/policy.wasm"}]}`,
    ...changed,
  };
}
