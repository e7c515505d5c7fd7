import { expect } from "chai";
import { PluginBreach } from "../../../core/plugin/breach.ts";
import { makeAction } from "../../support/action.ts";
import { hostileExtism } from "../../support/hostile-extism.ts";
import { rejection } from "../../support/ledger-world.ts";
import { portsOfOneThread } from "../../support/plugin-port.ts";
import { openSample } from "../../support/wasm-plugin.ts";

const action = makeAction({ arguments: { path: "/etc/passwd" } });
const maxGrowth = 128 * 1_048_576;
/** Enough for every bound of the host to be met. */
const fuel = 20_000_000;
const settings = { k: "v".repeat(1_000) };

describe("plugins that are hostile to Extism and WASI", () => {
  let begun: number;
  before(() => {
    begun = process.memoryUsage().rss;
  });

  after("have not made the process grow", () => {
    const grown = process.memoryUsage().rss - begun;
    process.stdout.write(`      ${hostileExtism.length} modules: the process grew by ${grown >> 20} MiB\n`);
    expect(grown).to.be.lessThan(maxGrowth);
  });

  for (const { name, reason, module } of hostileExtism) {
    it(`[S88] stops ${name}: ${reason}`, async () => {
      const spent: number[] = [];
      const observer = { ...portsOfOneThread.observer, spent: (share: number) => void spent.push(share) };
      const { policy } = await openSample(module, { fuel, settings, observer });
      for (let round = 0; round < 3; round++) {
        const error = await rejection(policy.settle(action));
        expect(error).to.be.instanceOf(PluginBreach).with.property("reason", reason);
      }
      // The same each time: nothing of a call is there in the next.
      expect(new Set(spent).size).to.equal(1);
    });
  }
});
