import { expect } from "chai";
import fc from "fast-check";
import { compileModule } from "../../../core/plugin/compiled-module.ts";
import { PluginMachine } from "../../../core/plugin/plugin-machine.ts";
import { makeAction } from "../../support/action.ts";
import { roundsOf } from "../../support/rounds.ts";
import { assemble, binaryOf, moduleOf, openSample } from "../../support/wasm-plugin.ts";

const action = makeAction();
const allow = '{"decision":"allow","findings":[]}';
const review =
  '{"decision":"review","findings":[{"rule":"sample.a","decision":"review","message":"Look.","severity":"low","risk":7,"approvals":2}]}';

const fuel = 1_000_000;

async function machineOf(text: string): Promise<PluginMachine> {
  return PluginMachine.open(await compileModule({ bytes: assemble(text), memoryPages: 16, fuel, settings: {} }));
}

async function fuelOf(text: string): Promise<number> {
  const machine = await machineOf(text);
  machine.call(new Uint8Array(8), fuel);
  return machine.fuelUsed;
}

/** `evaluate` runs `body` a number of times. */
function looped(times: number, body: string, more?: string): string {
  const loop = `(local.set $i (i32.const ${times})) (loop $l ${body} (br_if $l (local.tee $i (i32.sub (local.get $i) (i32.const 1)))))`;
  return moduleOf(loop, allow, more);
}

describe("a plugin in the sandbox", () => {
  it("answers with the verdict it wrote, its risk that of its findings", async () => {
    const { policy, breaches } = await openSample(moduleOf("", review));
    expect(policy.evaluate(action)).to.deep.equal({
      decision: "review",
      risk: 7,
      findings: [
        {
          rule: "sample.a",
          decision: "review",
          message: "Look.",
          severity: "low",
          risk: 7,
          mode: "enforce",
          approvals: 2,
        },
      ],
    });
    expect(breaches).to.deep.equal([]);
  });

  it("is asked in its phases alone, and abstains elsewhere", async () => {
    const { policy } = await openSample(moduleOf("", review), { phases: ["output"] });
    expect(policy.evaluate(action).decision).to.equal("abstain");
    expect(policy.evaluate(makeAction({ phase: "output" })).decision).to.equal("review");
  });

  it("keeps nothing from one call to the next: memory, globals, grown memory", async () => {
    const seen = "(i32.or (i32.load (i32.const 64)) (global.get $g))";
    const dirty = `(if ${seen} (then unreachable)) (i32.store (i32.const 64) (i32.const 1)) (global.set $g (i32.const 1))`;
    const more =
      '(memory 1) (global $g (mut i32) (i32.const 0)) (global $h (mut f64) (f64.const 1.5)) (data (i32.const 128) "kept")';
    for (const grow of ["", "(drop (memory.grow (i32.const 1)))"]) {
      const kept = "(if (i32.ne (i32.load (i32.const 128)) (i32.const 0x7470656b)) (then unreachable))";
      const { policy } = await openSample(
        moduleOf(`${dirty} ${kept} ${grow} (i32.store (i32.const 128) (i32.const 0))`, allow, more),
      );
      for (let round = 0; round < 5; round++) expect(policy.evaluate(action).decision).to.equal("allow");
    }
  });

  it("keeps nothing in the host's memory: what was freed with a call is 0 in the next", async () => {
    const peek =
      "(local.set $out (call $alloc (i64.const 4096))) (loop $l (if (call $load_u8 (i64.add (local.get $out) (local.get $j))) (then unreachable)) (call $store_u8 (i64.add (local.get $out) (local.get $j)) (i32.const 83)) (br_if $l (i64.lt_u (local.tee $j (i64.add (local.get $j) (i64.const 1))) (i64.const 4096))))";
    const { policy } = await openSample(moduleOf(peek, allow), { fuel: 5_000_000 });
    for (let round = 0; round < 3; round++) expect(policy.evaluate(action).decision).to.equal("allow");
  });

  it("answers again after a breach, from a fresh state", async () => {
    const odd =
      "(if (i32.eq (call $input_load_u8 (i64.const 2)) (i32.const 115)) (then (global.set $g (i32.const 1)) (if (i32.gt_s (i32.wrap_i64 (call $input_length)) (i32.const 900)) (then unreachable)))) (if (i32.ne (global.get $g) (i32.const 1)) (then unreachable))";
    const { policy, breaches } = await openSample(
      moduleOf(odd, allow, "(memory 1) (global $g (mut i32) (i32.const 0))"),
    );
    for (let round = 0; round < 3; round++) {
      expect(policy.evaluate(action).decision).to.equal("allow");
      expect(() => policy.evaluate(makeAction({ arguments: { long: "x".repeat(900) } }))).to.throw("trap");
    }
    expect(breaches).to.have.length(3);
  });

  it("runs the start function and the initializer once, in this order, and keeps what they did", async () => {
    const more = `(memory 1) (global $g (mut i32) (i32.const 0))
      (func $s (global.set $g (i32.add (global.get $g) (i32.const 2)))) (start $s)
      (func (export "_initialize") (global.set $g (i32.mul (global.get $g) (i32.const 5))))`;
    const { policy } = await openSample(
      moduleOf("(if (i32.ne (global.get $g) (i32.const 10)) (then unreachable))", allow, more),
    );
    for (let round = 0; round < 3; round++) expect(policy.evaluate(action).decision).to.equal("allow");
  });

  it("spends the same fuel on the same input every time, to the unit", async () => {
    const machine = await machineOf(looped(1_000, "(local.set $j (i64.add (local.get $j) (i64.const 3)))"));
    const spent = new Set<number>();
    for (let round = 0; round < 200; round++) {
      machine.call(new Uint8Array(16), fuel);
      spent.add(machine.fuelUsed);
    }
    expect(spent.size).to.equal(1);
    const [enough = 0] = spent;
    expect(machine.call(new Uint8Array(16), enough)).to.have.length(allow.length);
    expect(() => machine.call(new Uint8Array(16), enough - 1)).to.throw("fuel_exhausted");
  });

  it("charges each turn of a loop, and more for what is dear", async () => {
    const empty = await fuelOf(looped(1, ""));
    const turn = ((await fuelOf(looped(1_001, ""))) - empty) / 1_000;
    const price = async (body: string, more?: string): Promise<number> =>
      ((await fuelOf(looped(1_001, body, more))) - (await fuelOf(looped(1, body, more)))) / 1_000 - turn;
    expect(turn).to.be.within(4, 10);
    expect(await price("(drop (i64.div_u (i64.const 9) (i64.const 4)))")).to.be.greaterThan(24);
    expect(await price("(drop (call $input_length))")).to.be.greaterThan(190);
    expect(await price("(call $nothing)", "(memory 1) (func $nothing)")).to.be.greaterThan(10);
    expect(await price("(memory.fill (i32.const 0) (i32.const 0) (i32.const 4096))")).to.be.within(512 + 256, 900);
    expect(await fuelOf(moduleOf("(drop (memory.grow (i32.const 3)))", allow))).to.be.greaterThan(3 * 32_768);
  });

  it("charges more in a function that fits no cache, and no more for a long module of short ones", async () => {
    const forks = (count: number): number[] => [
      ...Array.from({ length: count }, () => [0x41, 1, 0x04, 0x40, 0x0b]).flat(),
      0x41,
      0,
    ];
    const priceOf = async (count: number, functions: number): Promise<number> => {
      const bytes = binaryOf(forks(count), functions);
      const machine = await PluginMachine.open(await compileModule({ bytes, memoryPages: 16, fuel, settings: {} }));
      expect(() => machine.call(new Uint8Array(), fuel)).to.throw("missing_output");
      return machine.fuelUsed / count;
    };
    const short = await priceOf(500, 1);
    expect(await priceOf(500, 60)).to.equal(short);
    expect(await priceOf(20_000, 1)).to.be.greaterThan(2 * short);
  });

  it("computes what an unmetered module computes", async () => {
    const fib =
      "(func $f (param i32) (result i32) (if (result i32) (i32.lt_s (local.get 0) (i32.const 2)) (then (local.get 0)) (else (i32.add (call $f (i32.sub (local.get 0) (i32.const 1))) (call $f (i32.sub (local.get 0) (i32.const 2)))))))";
    const sum = "(func $s (param i32 i32) (result i32 i32) (local.get 1) (i32.add (local.get 0) (local.get 1)))";
    const more = `(memory 1 8) ${fib} ${sum} (table 1 funcref) (elem (i32.const 0) $f)`;
    const checks = [
      "(i32.ne (call_indirect (param i32) (result i32) (i32.const 15) (i32.const 0)) (i32.const 610))",
      "(i32.ne (block (result i32) (call $s (i32.const 3) (i32.const 4)) (i32.sub)) (i32.const -3))",
      "(i32.ne (memory.grow (i32.const 2)) (i32.const 1))",
      "(i32.ne (memory.grow (i32.const 7)) (i32.const -1))",
      "(i32.ne (memory.size) (i32.const 3))",
      "(i32.ne (i32.trunc_sat_f64_s (f64.const nan)) (i32.const 0))",
      "(i32.ne (i32.extend8_s (i32.const 255)) (i32.const -1))",
      "(i64.ne (loop (result i64) (local.set $j (i64.add (local.get $j) (i64.const 1))) (br_if 0 (i64.lt_s (local.get $j) (i64.const 9))) (local.get $j)) (i64.const 9))",
    ];
    const { policy } = await openSample(
      moduleOf(checks.map((check) => `(if ${check} (then unreachable))`).join("\n"), allow, more),
    );
    expect(policy.evaluate(action).decision).to.equal("allow");
  });

  it("[S29] rests after five breaches in a row, for this tenant alone, and blocks while it rests", async () => {
    const module = moduleOf(
      "(if (i32.gt_s (i32.wrap_i64 (call $input_length)) (i32.const 900)) (then unreachable))",
      allow,
    );
    const { policy, breaches, rests, clock } = await openSample(module);
    const bad = makeAction({ arguments: { long: "x".repeat(900) } });
    for (let round = 0; round < 5; round++) expect(() => policy.evaluate(bad)).to.throw("trap");
    expect(rests).to.deep.equal(["acme"]);
    expect(() => policy.evaluate(action)).to.throw("circuit_open");
    expect(policy.evaluate(makeAction({ tenant: "other" })).decision).to.equal("allow");
    clock.ms += 29_999;
    expect(() => policy.evaluate(action)).to.throw("circuit_open");
    clock.ms += 1;
    expect(() => policy.evaluate(bad)).to.throw("trap");
    expect(() => policy.evaluate(action)).to.throw("circuit_open");
    clock.ms += 30_000;
    expect(policy.evaluate(action).decision).to.equal("allow");
    for (let round = 0; round < 4; round++) expect(() => policy.evaluate(bad)).to.throw("trap");
    expect(policy.evaluate(action).decision).to.equal("allow");
    expect(breaches.filter((reason) => reason === "circuit_open")).to.have.length(3);
  });

  it("[S35] survives random bytes in good modules: each is refused, blocks in its budget, or answers", async () => {
    const good = assemble(
      moduleOf(
        "(drop (memory.grow (i32.const 1)))",
        allow,
        "(memory 1) (table 1 funcref) (elem (i32.const 0) $input_length) (global $g (mut i32) (i32.const 3)) (func $f (param i32) (local i64) (if (local.get 0) (then (call $f (i32.sub (local.get 0) (i32.const 1))))))",
      ),
    );
    const ends = { refused: 0, blocked: 0, answered: 0 };
    const change = fc.tuple(fc.nat(good.length - 1), fc.nat(255));
    await fc.assert(
      fc.asyncProperty(fc.array(change, { minLength: 1, maxLength: 4 }), async (changes) => {
        const bytes = changes.reduce((mutant, [at, byte]) => mutant.with(at, byte), good);
        ends[await endOf(bytes)] += 1;
      }),
      { numRuns: roundsOf(40, 1_000), seed: 7 },
    );
    expect(ends.refused).to.be.greaterThan(0);
    expect(ends.blocked + ends.answered).to.be.greaterThan(0);
  });
});

async function endOf(bytes: Uint8Array): Promise<"refused" | "blocked" | "answered"> {
  const opened = await openSample(bytes).catch((error: unknown) => {
    expect(error).to.have.property("code", "PLUGIN_INVALID");
    return undefined;
  });
  if (opened === undefined) return "refused";
  try {
    opened.policy.evaluate(action);
    return "answered";
  } catch (error) {
    expect(error).to.have.property("name", "PluginBreach");
    return "blocked";
  }
}
