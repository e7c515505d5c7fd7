import { createHash } from "node:crypto";
import { expect } from "chai";
import { abiFunctions, abiModule, type HostSignature } from "../../core/plugin/abi.ts";
import { PluginBreach } from "../../core/plugin/breach.ts";
import { wasiModule, wasiSignatures } from "../../core/plugin/wasi.ts";
import { makeAction } from "../support/action.ts";
import { portsOfOneThread } from "../support/plugin-port.ts";
import { roundsOf } from "../support/rounds.ts";
import { abstain, assemble, openSample } from "../support/wasm-plugin.ts";

/** A function of the host under the name that the module gives it. */
interface Imported extends HostSignature {
  readonly name: string;
  readonly text: string;
}

/** Every function that Extism's surface has for a plugin, from the tables that the sandbox admits imports by. */
const surface: readonly Imported[] = [
  ...Object.entries<HostSignature>(abiFunctions).map(importOf(abiModule)),
  ...Object.entries<HostSignature>(wasiSignatures).map(importOf(wasiModule)),
];

function importOf(module: string) {
  return ([name, { params, results }]: [string, HostSignature]): Imported => {
    const typed = (word: string, types: readonly string[]): string =>
      types.length === 0 ? "" : ` (${word} ${types.join(" ")})`;
    const type = `${typed("param", params)}${typed("result", results)}`;
    return { name, params, results, text: `(import "${module}" "${name}" (func $${name}${type}))` };
  };
}

/** Lengths, addresses and their neighbours where 32, 48 and 64 bits end, and what earlier calls gave. */
const values = {
  i32: ["0", "1", "8", "24", "65528", "65535", "65536", "131072", "2147483647", "-2147483648", "-1", "-8"],
  i64: [
    ...["0", "1", "8", "64", "1023", "1025", "262144", "262145", "1048576", "1048577", "-1", "-8"],
    ...["281474976710655", "281474976710656", "281474976710664", "-281474976710656", "562949953421312"],
    ...["4294967295", "4294967296", "9223372036854775807", "-9223372036854775808"],
  ],
} as const;

/** Numbers that follow from a text alone. */
function drawsOf(seed: string): (below: number) => number {
  let turn = 0;
  return (below) => createHash("sha256").update(`${seed} ${turn++}`).digest().readUInt32BE() % below;
}

/** A module that calls the surface so many times with hostile arguments, and answers as an ordinary plugin if it gets there. */
function hostileModule(seed: string, calls: number): string {
  const draw = drawsOf(seed);
  const pick = <T>(from: readonly T[]): T => from[draw(from.length)] as T;
  const argument = (type: "i32" | "i64"): string => {
    const kept = type === "i32" ? "$i" : "$j";
    return draw(3) === 0 ? `(local.get ${kept})` : `(${type}.const ${pick(values[type])})`;
  };
  const one = (): string => {
    // What ends the call at once would hide what comes after it.
    const called = pick(surface.filter(({ name }) => !name.startsWith("proc_") || draw(20) === 0));
    const call = `(call $${called.name} ${called.params.map(argument).join(" ")})`;
    const [result] = called.results;
    if (result === undefined) return call;
    return `(local.set ${result === "i32" ? "$i" : "$j"} ${call})`;
  };
  const alloc = (): string => `(local.set $j (call $alloc (i64.const ${pick([0, 1, 8, 300, 4_096, 262_144])})))`;
  const touch = (): string =>
    pick([`(i32.store (i32.const ${draw(65_532)}) (local.get $i))`, `(drop (memory.grow (local.get $i)))`]);
  const body = Array.from({ length: calls }, () => pick([one, one, one, one, alloc, alloc, touch])());
  const verdict = [...new TextEncoder().encode(abstain)];
  const stores = verdict.map(
    (byte, at) => `(call $store_u8 (i64.add (local.get $out) (i64.const ${at})) (i32.const ${byte}))`,
  );
  return `(module ${surface.map(({ text }) => text).join("\n")} (memory 1)
    (func (export "evaluate") (result i32) (local $out i64) (local $i i32) (local $j i64)
      ${body.join("\n")}
      (local.set $out (call $alloc (i64.const ${verdict.length})))
      ${stores.join("\n")}
      (call $output_set (local.get $out) (i64.const ${verdict.length}))
      (i32.const 0)))`;
}

const reasons = [
  "fuel_exhausted",
  "host_call",
  "trap",
  "log_cap",
  "output_cap",
  "plugin_error",
  "malformed_verdict",
  "memory_cap",
];
const day = new Date().toISOString().slice(0, 10);
const action = makeAction({ arguments: { path: "/etc/passwd" } });

describe(`an escape through the surface of Extism and WASI (${day})`, () => {
  it("finds a bound at every function: each call ends in a verdict or a breach, and leaves nothing for the next [S35, S88]", async () => {
    const ends = new Map<string, number>();
    for (let round = 0; round < roundsOf(30, 3_000); round++) {
      const seed = `${day} ${round}`;
      const module = hostileModule(seed, 1 + (round % 12));
      const spent: number[] = [];
      const observer = { ...portsOfOneThread.observer, spent: (share: number) => void spent.push(share) };
      const { policy } = await openSample(assemble(module), { settings: { k: "v".repeat(1_000) }, observer });
      const found: string[] = [];
      for (let call = 0; call < 3; call++) {
        const end = await Promise.resolve(policy.settle(action)).then(
          ({ decision }) => decision,
          (error: unknown) => (error instanceof PluginBreach ? error.reason : String(error)),
        );
        found.push(end);
      }
      expect(found[0], seed).to.be.oneOf(["abstain", ...reasons]);
      // The same each time, to the last unit of fuel: nothing of a call is there in the next.
      expect([new Set(found).size, new Set(spent).size], seed).to.deep.equal([1, 1]);
      ends.set(found[0] as string, (ends.get(found[0] as string) ?? 0) + 1);
    }
    expect(ends.get("abstain"), "modules that come to their end").to.be.above(0);
    expect(ends.size, [...ends.keys()].join()).to.be.above(3);
  });

  it("has no other door: what is not on the surface does not load [S35, S88]", async () => {
    const doors: readonly string[] = [
      '(import "env" "extism_http_request" (func (param i64 i64) (result i64)))',
      '(import "extism:host/user" "anything" (func))',
      '(import "extism:host/env" "constructor" (func))',
      '(import "extism:host/env" "__proto__" (func))',
      '(import "extism:host/env" "toString" (func (result i32)))',
      '(import "extism:host/env" "reset" (func))',
      '(import "extism:host/env" "memory" (memory 1))',
      '(import "extism:host/env" "alloc" (func (param i32) (result i32)))',
      '(import "extism:host/env" "output_set" (global i64))',
      '(import "wasi_snapshot_preview1" "path_open" (func (param i32) (result i32)))',
      '(import "wasi_snapshot_preview2" "fd_write" (func (param i32 i32 i32 i32) (result i32)))',
      '(import "wasi:http/outgoing-handler" "handle" (func))',
      '(import "wasi_snapshot_preview1" "memory" (memory 1))',
      '(import "extism:host/env\\00" "free" (func (param i64)))',
      '(import "" "" (func))',
    ];
    for (const door of doors) {
      const text = `(module ${door} (func (export "evaluate") (result i32) (i32.const 0)))`;
      const loaded = await openSample(text).then(
        () => "loaded",
        (error: { readonly code?: string }) => error.code,
      );
      expect(loaded, door).to.equal("PLUGIN_INVALID");
    }
  });
});
