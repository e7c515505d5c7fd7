import { expect } from "chai";
import { type BreakerState, CircuitBreaker } from "../../../core/egress/breaker.ts";

let nowMs: number;
let heard: BreakerState[];
let breaker: CircuitBreaker;

/** In each suite, because a hook outside of any runs for the tests of every file. */
function inOwnWorld(): void {
  beforeEach(() => {
    nowMs = 0;
    heard = [];
    breaker = new CircuitBreaker(
      { failures: 3, restMs: 1_000 },
      () => nowMs,
      (state) => heard.push(state),
    );
  });
}

function fail(times: number): void {
  for (let time = 0; time < times; time++) breaker.admit()?.failed();
}

describe("CircuitBreaker", () => {
  inOwnWorld();

  it("lets everything through until so many in a row failed", () => {
    fail(2);
    breaker.admit()?.succeeded();
    fail(2);
    expect(breaker.state).to.equal("closed");
    fail(1);
    expect(breaker.state).to.equal("open");
    expect(breaker.admit()).to.equal(undefined);
    expect(breaker.remainingMs).to.equal(1_000);
  });

  it("lets one through at a time after the rest, and all of them once that one succeeded", () => {
    fail(3);
    nowMs = 1_000;
    expect(breaker.state).to.equal("half_open");
    const probe = breaker.admit();
    expect(breaker.admit()).to.equal(undefined);
    probe?.succeeded();
    expect(breaker.state).to.equal("closed");
    expect(breaker.admit()).to.not.equal(undefined);
    expect(heard).to.deep.equal(["open", "closed"]);
  });

  it("rests again after one failure more", () => {
    fail(3);
    nowMs = 1_000;
    breaker.admit()?.failed();
    expect(breaker.state).to.equal("open");
    nowMs = 1_999;
    expect(breaker.admit()).to.equal(undefined);
    nowMs = 2_000;
    expect(breaker.admit()).to.not.equal(undefined);
  });

  it("lets another try where the one that tried was given up", () => {
    fail(3);
    nowMs = 1_000;
    breaker.admit()?.ended();
    expect(breaker.state).to.equal("half_open");
    expect(breaker.admit()).to.not.equal(undefined);
  });

  it("learns nothing from what was let through before it opened", () => {
    const early = breaker.admit();
    const late = breaker.admit();
    fail(3);
    early?.succeeded();
    expect(breaker.state).to.equal("open");
    nowMs = 1_000;
    breaker.admit();
    late?.ended();
    expect(breaker.admit(), "the try is still under way").to.equal(undefined);
  });

  it("counts what breaks off after it began", () => {
    for (let time = 0; time < 3; time++) {
      const admission = breaker.admit();
      admission?.began();
      admission?.failed();
    }
    expect(breaker.state).to.equal("open");
  });

  it("holds nobody up until a long answer ends, and rests at once where that breaks off", () => {
    fail(3);
    nowMs = 1_000;
    const probe = breaker.admit();
    probe?.began();
    expect(breaker.state).to.equal("closed");
    probe?.failed();
    expect(breaker.state).to.equal("open");
    nowMs = 2_000;
    const next = breaker.admit();
    next?.began();
    next?.succeeded();
    expect(breaker.failures).to.equal(0);
  });
});
