import { expect } from "chai";
import type { JsonObject } from "../../../core/action/json.ts";
import { ClockWatch, GatewayClock } from "../../../core/observe/gateway-clock.ts";
import { until } from "../../support/webhook-receiver.ts";

const begun = Date.parse("2026-03-01T00:00:00Z");
const hourMs = 3_600_000;

/** A machine whose clocks are set by hand. */
class Machine {
  #wall = begun;
  #elapsed = 5_000;
  #uptime = 900_000;
  /** Milliseconds for which the process stands still between two readings. */
  stallMs = 0;
  readonly clock = new GatewayClock({
    wallMs: () => {
      this.pass(this.stallMs);
      return this.#wall;
    },
    elapsedMs: () => this.#elapsed,
    uptimeMs: () => this.#uptime,
  });

  pass(ms: number): void {
    this.#wall += ms;
    this.#elapsed += ms;
    this.#uptime += ms;
  }

  set(ms: number): void {
    this.#wall += ms;
  }

  sleep(ms: number): void {
    this.#wall += ms;
    this.#uptime += ms;
  }

  /** Gateway time since the start. */
  get sinceBegin(): number {
    return this.clock.now() - begun;
  }

  /** Lets seconds pass with a check in each, while the wall clock is set by so much in each. */
  run(seconds: number, drift = 0): void {
    for (let second = 0; second < seconds; second++) {
      this.pass(1_000);
      this.set(drift);
      this.clock.check();
    }
  }
}

describe("GatewayClock", () => {
  let machine: Machine;

  beforeEach(() => {
    machine = new Machine();
  });

  it("goes on evenly whatever the wall clock is set to, and finds each jump once", () => {
    machine.run(10);
    machine.set(hourMs);
    machine.run(10);
    expect(machine.sinceBegin).to.equal(20_000);
    machine.set(-3 * hourMs);
    machine.run(10);
    expect(machine.sinceBegin).to.equal(30_000);
    expect(machine.clock.takeChanges()).to.deep.equal({
      jumps: [
        { foundMs: begun + 11_000 + hourMs, sizeMs: hourMs },
        { foundMs: begun + 21_000 - 2 * hourMs, sizeMs: -3 * hourMs },
      ],
      sleptMs: 0,
    });
    expect(machine.clock.takeChanges()).to.deep.equal({ jumps: [], sleptMs: 0 });
  });

  it("follows a clock that is slewed or runs unevenly, without a jump", () => {
    machine.run(hourMs / 1_000, 0.5);
    expect(machine.clock.takeChanges().jumps).to.deep.equal([]);
    expect(machine.sinceBegin).to.be.within(hourMs + 1_798, hourMs + 1_801);
  });

  it("is moved by small settings one after the other by a thousandth of the time at most, and finds them", () => {
    machine.run(60, 900);
    expect(machine.sinceBegin).to.be.within(60_000, 60_061);
    expect(machine.clock.takeChanges().jumps.length).to.be.above(10);
  });

  it("never goes back", () => {
    let last = machine.clock.now();
    for (const [ms, drift] of [
      [1, -1],
      [1_000, -1_900],
      [1, -500],
      [10, -5_000],
      [0, 0],
    ] as const) {
      machine.pass(ms);
      machine.set(drift);
      machine.clock.check();
      expect(machine.clock.now()).to.be.at.least(last);
      last = machine.clock.now();
    }
  });

  it("includes the time that the machine slept, at once where it is asked to check", () => {
    machine.run(10);
    machine.sleep(hourMs);
    expect(machine.clock.checked() - begun).to.equal(hourMs + 10_000);
    expect(machine.clock.takeChanges()).to.deep.equal({ jumps: [], sleptMs: hourMs });
  });

  it("tells a sleep from a setting during it", () => {
    machine.sleep(hourMs);
    machine.set(-7 * hourMs);
    machine.clock.check();
    expect(machine.sinceBegin).to.equal(hourMs);
    const { jumps, sleptMs } = machine.clock.takeChanges();
    expect([jumps.map(({ sizeMs }) => sizeMs), sleptMs]).to.deep.equal([[-7 * hourMs], hourMs]);
  });

  it("finds no jump where the process stood still between two readings", () => {
    machine.stallMs = 60_000;
    machine.clock.check();
    machine.stallMs = 0;
    machine.clock.check();
    expect(machine.clock.takeChanges().jumps).to.deep.equal([]);
  });

  it("gives the later and the earlier of both clocks", () => {
    machine.set(hourMs);
    expect([machine.clock.latest() - begun, machine.clock.earliest() - begun]).to.deep.equal([hourMs, 0]);
    machine.set(-2 * hourMs);
    expect([machine.clock.latest() - begun, machine.clock.earliest() - begun]).to.deep.equal([0, -hourMs]);
  });
});

describe("ClockWatch", () => {
  it("records jumps that could not be recorded later, as one", async () => {
    const machine = new Machine();
    const recorded: JsonObject[] = [];
    const logged: string[] = [];
    let isFailing = true;
    const watch = new ClockWatch({
      clock: machine.clock,
      log: {
        info: (_fields: object, event?: string) => logged.push(String(event)),
        warn: (_fields: object, event?: string) => logged.push(String(event)),
      } as never,
      record: async (detail) => {
        if (isFailing) throw new Error("the disk is full");
        recorded.push(detail);
      },
    });
    try {
      machine.set(hourMs);
      watch.check();
      await until(async () => logged.includes("clock_jump_record_failed"), "the failure");
      machine.set(hourMs);
      isFailing = false;
      watch.check();
      await until(async () => recorded.length > 0, "the record");
      const [expected, found] = [begun, begun + 2 * hourMs].map((ms) => new Date(ms).toISOString());
      expect(recorded).to.deep.equal([{ event: "jumped", expected, found, size_ms: 2 * hourMs, jumps: 2 }]);
      expect(logged.filter((event) => event === "clock_jumped").length).to.equal(2);
    } finally {
      await watch.close();
    }
  });
});
