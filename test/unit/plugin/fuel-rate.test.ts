import { expect } from "chai";
import { compileModule } from "../../../core/plugin/compiled-module.ts";
import { measureFuelRate } from "../../../core/plugin/fuel-rate.ts";
import { PluginMachine } from "../../../core/plugin/plugin-machine.ts";
import { cpuMs } from "../../support/duration.ts";
import { assemble, moduleOf } from "../../support/wasm-plugin.ts";

describe("measureFuelRate(elapsedMs)", () => {
  it("is what this machine spends in a millisecond", async () => {
    const rate = measureFuelRate(cpuMs);
    const same = "(loop $l (i64.store (i32.const 8) (i64.load (i32.const 5))) (br $l))";
    const compiled = await compileModule({ bytes: assemble(moduleOf(same)), memoryPages: 1, fuel: rate, settings: {} });
    const machine = await PluginMachine.open(compiled);
    const fuel = rate * 20;
    const shares = Array.from({ length: 10 }, () => {
      const began = cpuMs();
      expect(() => machine.call(new Uint8Array(), fuel)).to.throw("fuel_exhausted");
      return (cpuMs() - began) / 20;
    });
    expect(Math.min(...shares), "CPU time to what the rate promises").to.be.within(0.1, 5);
  });

  it("follows the clock it is given: a slower one makes a millisecond worth more", () => {
    const rateAt = (speed: number): number => measureFuelRate(() => cpuMs() * speed);
    expect(rateAt(0.01)).to.be.greaterThan(5 * rateAt(1));
  });
});
