import { expect } from "chai";
import { PluginBreach } from "../../../core/plugin/breach.ts";
import { makeAction } from "../../support/action.ts";
import { hostileCalls } from "../../support/hostile-call.ts";
import { hostileModules } from "../../support/hostile-load.ts";
import { rejection } from "../../support/ledger-world.ts";
import { openSample } from "../../support/wasm-plugin.ts";

const action = makeAction({ arguments: { path: "/etc/passwd" } });
const maxGrowth = 256 * 1_048_576;

describe("hostile plugins", () => {
  let begun: number;
  before(() => {
    begun = process.memoryUsage().rss;
  });

  after("have not made the process grow", () => {
    const grown = process.memoryUsage().rss - begun;
    process.stdout.write(
      `      ${hostileCalls.length + hostileModules.length} modules: the process grew by ${grown >> 20} MiB\n`,
    );
    expect(grown).to.be.lessThan(maxGrowth);
  });

  for (const { name, reason, text } of hostileCalls) {
    it(`[S29, S35] stops ${name}: ${reason}`, async () => {
      const { policy, breaches } = await openSample(text());
      for (let round = 0; round < 3; round++) {
        const error = await rejection(policy.settle(action));
        expect(error).to.be.instanceOf(PluginBreach).with.property("reason", reason);
      }
      expect(breaches).to.deep.equal([reason, reason, reason]);
    });
  }

  for (const [name, said, module] of hostileModules) {
    it(`[S35] does not load ${name}`, async () => {
      const error = await rejection(openSample(module));
      expect(error).to.have.property("code", "PLUGIN_INVALID");
      expect(error.message).to.match(said);
    });
  }
});
