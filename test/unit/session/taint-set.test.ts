import { expect } from "chai";
import type { Taint } from "../../../core/action/session-state.ts";
import { TaintSet } from "../../../core/session/session-entry.ts";
import { rejection } from "../../support/ledger-world.ts";

function taint(name: string, at = 1): Taint {
  return { name, target: "web", tool: "fetch", action: "a", at };
}

/** An attempt to record that ends when a test says so. */
class Attempt {
  readonly asked: string[][] = [];
  readonly #ends: ((error?: Error) => void)[] = [];

  readonly record = (names: readonly string[]): Promise<void> => {
    this.asked.push([...names]);
    return new Promise((resolve, reject) => {
      this.#ends.push((error) => (error === undefined ? resolve() : reject(error)));
    });
  };

  end(error?: Error): void {
    this.#ends.shift()?.(error);
  }
}

describe("TaintSet", () => {
  it("keeps the first taint of a name", () => {
    const taints = new TaintSet();
    expect([taints.add(taint("untrusted", 1)), taints.add(taint("untrusted", 2))]).to.deep.equal([true, false]);
    expect(taints.list).to.deep.equal([taint("untrusted", 1)]);
  });

  it("has room for 64, and for what is among them again", () => {
    const taints = new TaintSet();
    for (let n = 0; n < 63; n++) taints.add(taint(`t${n}`));
    expect([taints.hasRoom(["new"]), taints.hasRoom(["new", "newer"])]).to.deep.equal([true, false]);
    taints.add(taint("new"));
    expect([taints.hasRoom(["new", "t0"]), taints.hasRoom(["newer"])]).to.deep.equal([true, false]);
  });

  it("records a taint once, and lets nobody go on before it is on record", async () => {
    const [taints, attempt] = [new TaintSet(), new Attempt()];
    taints.add(taint("untrusted"));
    let settled = 0;
    const both = [1, 2].map(() => taints.settle(["untrusted"], attempt.record).then(() => settled++));
    await new Promise(setImmediate);
    expect([attempt.asked, settled]).to.deep.equal([[["untrusted"]], 0]);
    attempt.end();
    await Promise.all(both);
    await taints.settle(["untrusted"], attempt.record);
    expect(attempt.asked).to.deep.equal([["untrusted"]]);
  });

  it("rejects for all who wait where it cannot be recorded, and records it for the next", async () => {
    const [taints, attempt] = [new TaintSet(), new Attempt()];
    taints.add(taint("untrusted"));
    const both = [1, 2].map(() => rejection(taints.settle(["untrusted"], attempt.record)));
    attempt.end(new Error("the disk is full"));
    expect((await Promise.all(both)).map(({ message }) => message)).to.deep.equal(Array(2).fill("the disk is full"));
    const again = taints.settle(["untrusted"], attempt.record);
    attempt.end();
    await again;
    expect(attempt.asked).to.deep.equal([["untrusted"], ["untrusted"]]);
  });

  it("records nothing of what came from the store", async () => {
    const [taints, attempt] = [new TaintSet([taint("untrusted")]), new Attempt()];
    await taints.settle(["untrusted"], attempt.record);
    expect(attempt.asked).to.deep.equal([]);
  });
});
