import { expect } from "chai";
import { PluginBreach } from "../../../core/plugin/breach.ts";
import { compileModule } from "../../../core/plugin/compiled-module.ts";
import { PluginMachine } from "../../../core/plugin/plugin-machine.ts";
import { assemble, imports } from "../../support/wasm-plugin.ts";

const fuel = 50_000_000;
const page = 65_536;
const chunk = 16_384;

const wasi = `
  (import "wasi_snapshot_preview1" "fd_write" (func $fd_write (param i32 i32 i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "fd_read" (func $fd_read (param i32 i32 i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "fd_fdstat_get" (func $fd_fdstat_get (param i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "random_get" (func $random_get (param i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "clock_time_get" (func $clock_time_get (param i32 i64 i32) (result i32)))
  (import "wasi_snapshot_preview1" "args_sizes_get" (func $args_sizes_get (param i32 i32) (result i32)))`;

/**
 * A module that answers with a number which depends on each byte of its memory, up to four pages behind what it sees, and
 * then runs the body of `bodies` that the length of its input names, if there is one; with an input that begins with a 1 it
 * traps after that. Data lies at its beginning, across the first two chunks, and at its end.
 */
function hashing(bodies: readonly string[], pages: number): string {
  const end = pages * page;
  const cases = bodies.map(
    (body, index) => `(if (i64.eq (call $input_length) (i64.const ${index + 2})) (then ${body}))`,
  );
  return `(module ${imports} ${wasi} (memory ${pages})
    (data (i32.const 0) "begin") (data (i32.const ${chunk - 6}) "across the edge") (data (i32.const ${end - 3}) "end")
    (func (export "evaluate") (result i32) (local $out i64) (local $i i32) (local $j i64)
      (loop $l
        (local.set $j (i64.add (i64.rotl (local.get $j) (i64.const 7)) (i64.load (local.get $i))))
        (br_if $l (i32.lt_u (local.tee $i (i32.add (local.get $i) (i32.const 8))) (i32.const ${(pages + 4) * page}))))
      (local.set $out (call $alloc (i64.const 8)))
      (call $store_u64 (local.get $out) (local.get $j))
      (call $output_set (local.get $out) (i64.const 8))
      ${cases.join("\n")}
      (if (call $input_load_u8 (i64.const 0)) (then unreachable))
      (i32.const 0)))`;
}

async function machineOf(text: string): Promise<PluginMachine> {
  return PluginMachine.open(await compileModule({ bytes: assemble(text), memoryPages: 64, fuel, settings: {} }));
}

/** The hash that a call saw, and then wrote what its input says; the reason where it ended in a breach. */
function answerOf(machine: PluginMachine, inputLength: number, firstByte = 0): string {
  const input = new Uint8Array(inputLength);
  input[0] = firstByte;
  try {
    return Buffer.from(machine.call(input, fuel)).toString("hex");
  } catch (error) {
    if (error instanceof PluginBreach) return error.reason;
    throw error;
  }
}

const stores = [
  ...["i32.store", "i32.store8", "i32.store16"].map((store) => [store, "(i32.const -1)"] as const),
  ...["i64.store", "i64.store8", "i64.store16", "i64.store32"].map((store) => [store, "(i64.const -1)"] as const),
  ["f32.store", "(f32.const 1.5)"],
  ["f64.store", "(f64.const 1.5)"],
] as const;
const end = 5 * page;
const addresses = [0, 5, chunk - 7, chunk - 4, chunk - 1, chunk, 3 * chunk - 1, end - 8, end, end + 4 * page - 8];

function fill(at: number, length: number): string {
  return `(memory.fill (i32.const ${at}) (i32.const 7) (i32.const ${length}))`;
}

type Writes = readonly (readonly [name: string, body: string])[];

/** What a call writes in a memory of five pages: twenty chunks. */
const fewChunks: Writes = [
  ...stores.flatMap(([store, value]) =>
    addresses.map((at) => [`${store} at ${at}`, `(${store} (i32.const ${at}) ${value})`] as const),
  ),
  ["a store far behind its address", `(i64.store offset=${end - 8} (i32.const 0) (i64.const -1))`],
  ["a store 4 GiB behind its address", "(i64.store offset=4294967295 (i32.const 9) (i64.const -1))"],
  ["all of its memory in one fill", fill(0, end)],
  ["a fill across an edge", fill(chunk - 1, 2)],
  ["a fill of one chunk's last byte", fill(2 * chunk - 1, 1)],
  ["a fill of nothing", fill(7, 0)],
  ["a fill beyond its memory", fill(end - 8, 5 * page)],
  ["a copy to its end", `(memory.copy (i32.const ${end - 20}) (i32.const 0) (i32.const 20))`],
  ["a copy that overlaps", `(memory.copy (i32.const ${chunk - 3}) (i32.const 0) (i32.const ${2 * chunk}))`],
  ["pages that it grew by", `(drop (memory.grow (i32.const 4))) ${fill(end, 4 * page)}`],
  ["random bytes", `(drop (call $random_get (i32.const 1) (i32.const ${chunk})))`],
  ["the time", `(drop (call $clock_time_get (i32.const 0) (i64.const 0) (i32.const ${chunk - 4})))`],
  ["the state of a stream", `(drop (call $fd_fdstat_get (i32.const 1) (i32.const ${chunk - 12})))`],
  ["counts of arguments", `(drop (call $args_sizes_get (i32.const 0) (i32.const ${end - 4})))`],
  ["bytes read", `(drop (call $fd_read (i32.const 0) (i32.const 0) (i32.const 0) (i32.const ${chunk - 2})))`],
  ["bytes written", `(drop (call $fd_write (i32.const 1) (i32.const 64) (i32.const 1) (i32.const ${chunk + 4})))`],
];

/** In a memory of eighty chunks, of which each of the first sixteen shares its mark with another. */
const manyChunks: Writes = [
  ...addresses.map(
    (at) => [`a byte at ${at + 15 * page}`, `(i32.store8 (i32.const ${at + 15 * page}) (i32.const 1))`] as const,
  ),
  ["a fill across the sixty-fourth chunk", fill(62 * chunk + 5, 5 * chunk)],
  ["a fill of sixty-three chunks", fill(chunk, 63 * chunk)],
  ["a fill of sixty-four chunks", fill(chunk + 5, 63 * chunk)],
  ["a fill of nearly all chunks", fill(3, 79 * chunk)],
];

describe("the memory that a call finds", () => {
  for (const [pages, writes] of [
    [5, fewChunks],
    [20, manyChunks],
  ] as const) {
    it(`[S35] is that of the first, to its last byte, whatever the call before it wrote in ${pages} pages`, async () => {
      const bodies = writes.map(([, body]) => body);
      const machine = await machineOf(hashing([...bodies, "(drop (memory.grow (i32.const 0)))"], pages));
      const pristine = answerOf(machine, 1);
      for (const [index, [name]] of writes.entries()) {
        for (const trap of [0, 1]) {
          answerOf(machine, index + 2, trap);
          expect(machine.isReady, name).to.equal(true);
          expect(answerOf(machine, 1), name).to.equal(pristine);
        }
      }
    });
  }

  it("[S35] is that of the first after one that needed a new instance for its memory", async () => {
    const machine = await machineOf(hashing([`(drop (memory.grow (i32.const 6))) ${fill(0, 11 * page)}`], 5));
    const pristine = answerOf(machine, 1);
    for (let round = 0; round < 3; round++) {
      expect(answerOf(machine, 2)).to.equal(pristine);
      expect(machine.isReady).to.equal(false);
      await machine.prepare();
    }
  });
});
