import { expect } from "chai";
import { type ActionEnvelope, phases } from "../../../core/action/envelope.ts";
import { encodeInput, pluginInput, pluginInputInTurns } from "../../../core/plugin/abi.ts";
import { PluginBreach } from "../../../core/plugin/breach.ts";
import { compilePlugin, type PluginOptions, type PluginPolicy } from "../../../core/plugin/plugin.ts";
import type { PluginPool } from "../../../core/plugin/plugin-pool.ts";
import { PolicyChain } from "../../../core/policy/chain.ts";
import { turnsOf } from "../../../core/store/pace.ts";
import { makeAction } from "../../support/action.ts";
import { rejection } from "../../support/ledger-world.ts";
import { openPool, portsOfOneThread } from "../../support/plugin-port.ts";
import { abstain, assemble, moduleOf } from "../../support/wasm-plugin.ts";

const short = makeAction({ arguments: { a: 1 } });
const long = makeAction({ arguments: { text: "x".repeat(2_000) } });
const isLong = "(i32.gt_u (i32.wrap_i64 (call $input_length)) (i32.const 2000))";
/** About 200,000 units for a long input, next to nothing for a short one. */
const works = `(if ${isLong} (then (local.set $i (i32.const 30000)) (loop $l (br_if $l (local.tee $i (i32.sub (local.get $i) (i32.const 1)))))))`;
const spins = `(if ${isLong} (then (loop $l (br $l))))`;

describe("a plugin whose calls may run in the pool", () => {
  let pool: PluginPool;
  const spent: number[] = [];

  before(() => {
    pool = openPool(2);
    pool.warm();
  });
  beforeEach(() => void spent.splice(0));
  after(() => pool.close());

  async function open(text: string, changed: Partial<PluginOptions> = {}): Promise<PluginPolicy> {
    return compilePlugin({
      ...portsOfOneThread,
      observer: { ...portsOfOneThread.observer, spent: (share) => void spent.push(share) },
      pool,
      ref: { kind: "plugin", name: "sample", version: "1.0.0", digest: "sha256:00", signer: null },
      mode: "enforce",
      phases,
      settings: {},
      fuel: 1_000_000,
      memoryPages: 32,
      sliceFuel: 50_000,
      module: assemble(text),
      ...changed,
    });
  }

  it("answers at once where a slice is enough, and by a promise where it is not, with the same verdict", async () => {
    const policy = await open(moduleOf(works));
    const atOnce = policy.evaluate(short);
    expect(atOnce).not.to.be.instanceOf(Promise);
    const later = policy.evaluate(long);
    expect(later).to.be.instanceOf(Promise);
    const here = (await open(moduleOf(works), { sliceFuel: 1_000_000 })).evaluate(long);
    expect(here).not.to.be.instanceOf(Promise);
    expect(await later).to.deep.equal(here);
    expect(here).to.deep.equal(atOnce);
  });

  it("makes a large input in turns, of the same bytes [S76]", async () => {
    const rows = Array.from({ length: 30_000 }, (_, at) => ({ at, name: "\u017c\u00f3\u0142w", note: "n".repeat(30) }));
    const action = makeAction({ arguments: { rows } });
    let pauses = 0;
    const turns = turnsOf(async () => void pauses++);
    const inTurns = encodeInput(await pluginInputInTurns("{}", action, turns));
    // A copy is another action: nothing is remembered of it.
    expect(Buffer.from(inTurns).equals(encodeInput(pluginInput("{}", { ...action })))).to.equal(true);
    expect(pauses).to.be.at.least(3);
    expect(() => pluginInput("{}", makeAction({ arguments: { text: "x".repeat(4_194_304) } }))).to.throw(
      "at most 4194304",
    );
  });

  it("does not try a call here whose input alone takes longer to read than a slice", async () => {
    const policy = await open(moduleOf(""), { sliceFuel: 1_000_000 });
    const [fits, large] = [200_000, 262_144].map((length) => makeAction({ arguments: { text: "x".repeat(length) } }));
    expect(policy.evaluate(fits as ActionEnvelope)).not.to.be.instanceOf(Promise);
    const later = policy.evaluate(large as ActionEnvelope);
    expect(later).to.be.instanceOf(Promise);
    expect((await later).decision).to.equal("abstain");
  });

  it("counts the fuel of a call once, the same wherever it ran", async () => {
    const policy = await open(moduleOf(works));
    await policy.evaluate(long);
    (await open(moduleOf(works), { sliceFuel: 1_000_000 })).evaluate(long);
    expect(spent).to.have.length(2);
    expect(spent[0]).to.equal(spent[1]).and.to.be.within(0.1, 0.5);
    expect(await rejection(Promise.resolve((await open(moduleOf(spins))).evaluate(long)))).to.be.instanceOf(
      PluginBreach,
    );
    expect(spent[2]).to.equal(1);
  });

  it("tries less here for a tenant whose calls are too long, and no less for another", async () => {
    const asked = { calls: 0 };
    const counting = {
      maxWaitMs: 0,
      call: (order: Parameters<PluginPool["call"]>[0]) => {
        asked.calls += 1;
        return pool.call(order);
      },
    };
    // About 30,000 units: less than a slice, more than an eighth of one.
    const policy = await open(moduleOf(works.replace("30000", "5000")), {
      pool: counting,
      sliceFuel: 80_000,
      elapsedMs: () => 0,
    });
    const spinning = await open(moduleOf(`${spins}`), { pool: counting, sliceFuel: 80_000, elapsedMs: () => 0 });
    expect(policy.evaluate(long)).not.to.be.instanceOf(Promise);
    await rejection(Promise.resolve(spinning.evaluate(long)));
    expect(asked.calls).to.equal(1);
    const mixed = await open(moduleOf(`${works.replace("30000", "5000")} ${spins.replace("2000", "6000")}`), {
      pool: counting,
      sliceFuel: 80_000,
      elapsedMs: () => 0,
    });
    const hostile = makeAction({ arguments: { text: "x".repeat(8_000) } });
    expect(mixed.evaluate(long)).not.to.be.instanceOf(Promise);
    for (let round = 0; round < 3; round++) await rejection(Promise.resolve(mixed.evaluate(hostile)));
    expect(mixed.evaluate(long)).to.be.instanceOf(Promise);
    expect(mixed.evaluate(short)).not.to.be.instanceOf(Promise);
    expect(mixed.evaluate(makeAction({ tenant: "other", arguments: long.arguments }))).not.to.be.instanceOf(Promise);
  });

  it("is never run here where its memory is large", async () => {
    const policy = await open(moduleOf("", abstain, "(memory 32)"));
    const verdict = policy.evaluate(short);
    expect(verdict).to.be.instanceOf(Promise);
    expect((await verdict).decision).to.equal("abstain");
  });

  it("[S29] rests after breaches that came later, and an answer from before does not end the rest", async () => {
    const clock = { ms: 0 };
    const rests: string[] = [];
    const observer = {
      ...portsOfOneThread.observer,
      circuitOpened: (_: unknown, tenant: string) => void rests.push(tenant),
    };
    const text = moduleOf(`${works} ${spins.replace("2000", "6000")}`);
    const policy = await open(text, { elapsedMs: () => clock.ms, observer });
    const hostile = makeAction({ arguments: { text: "x".repeat(8_000) } });
    const failures = Array.from({ length: 7 }, () => rejection(Promise.resolve(policy.evaluate(hostile))));
    const slow = policy.evaluate(long);
    const errors = await Promise.all(failures);
    expect(new Set(errors.map(({ message }) => message.split(":")[0]))).to.deep.equal(new Set(["fuel_exhausted"]));
    expect((await slow).decision).to.equal("abstain");
    expect(rests).to.deep.equal(["acme"]);
    expect(() => policy.evaluate(short)).to.throw("circuit_open");
    clock.ms += 30_000;
    expect(await policy.evaluate(short)).to.have.property("decision", "abstain");
  });

  it("[S29, S35] blocks in the chain where it is late, and tells of its own breach", async () => {
    const hurried = openPool(1, 300);
    const text = moduleOf(spins);
    const policy = await open(text, { pool: hurried, fuel: Number.MAX_SAFE_INTEGER });
    const chain = new PolicyChain({
      policies: [policy],
      defaultDecision: "allow",
      deadlineMs: 300,
      newId: () => "1",
      elapsedMs: () => performance.now(),
    });
    const { decision, verdicts } = await chain.evaluate(long);
    await hurried.close();
    expect(decision).to.equal("block");
    expect(verdicts[0]?.error).to.match(/^PluginBreach: timeout/);
  });

  it("does not blame the plugin where the pool has no room", async () => {
    const full = { maxWaitMs: 0, call: () => Promise.reject(new PluginBreach("overloaded", "no room")) };
    const policy = await open(moduleOf(works), { pool: full, sliceFuel: 80_000, elapsedMs: () => 0 });
    for (let round = 0; round < 9; round++) {
      expect((await rejection(Promise.resolve(policy.evaluate(long)))).message).to.match(/^overloaded/);
    }
    expect(await policy.evaluate(short)).to.have.property("decision", "abstain");
  });

  it("says in the chain which limit of the pool it was, and when to come back [S77]", async () => {
    const full = { maxWaitMs: 0, call: () => Promise.reject(new PluginBreach("overloaded", "expected 1, got 2")) };
    const policies = [await open(moduleOf(works), { pool: full, sliceFuel: 80_000 })];
    const [newId, elapsedMs] = [() => "1", () => performance.now()];
    const chain = new PolicyChain({ policies, defaultDecision: "allow", deadlineMs: 300, newId, elapsedMs });
    const { decision, verdicts } = await chain.evaluate(long);
    expect([decision, verdicts[0]?.findings[0]?.message]).to.deep.equal([
      "block",
      "policy `sample` could not answer, so the action is blocked: expected 1, got 2",
    ]);
  });

  it("[S35] runs a module's beginnings where it is compiled, and never again", async () => {
    const slow = `(memory 1) (global $begun (mut i32) (i32.const 0))
      (func $s (local $i i32) (local.set $i (i32.const 100000)) (loop $l (br_if $l (local.tee $i (i32.sub (local.get $i) (i32.const 1))))) (drop (memory.grow (i32.const 2))) (i32.store (i32.const 140000) (i32.const 7)) (global.set $begun (i32.add (global.get $begun) (i32.const 1)))) (start $s)`;
    const check =
      "(if (i32.ne (i32.mul (global.get $begun) (i32.load (i32.const 140000))) (i32.const 7)) (then unreachable)) (i32.store (i32.const 140000) (i32.const 9)) (drop (memory.grow (i32.const 1)))";
    const policy = await open(moduleOf(check, abstain, slow));
    for (let round = 0; round < 4; round++) {
      const verdict = policy.evaluate(short);
      expect(verdict).not.to.be.instanceOf(Promise);
      expect(await verdict).to.have.property("decision", "abstain");
    }
  });
});
