import { expect } from "chai";
import { withOutput } from "../../../core/action/envelope.ts";
import { openPlugin } from "../../../core/cli/plugin-folder.ts";
import { makeAction } from "../../support/action.ts";
import { firstParty, folderOf, openFirstParty } from "../../support/first-party.ts";
import { hostileTexts } from "../../support/hostile-text.ts";
import type { ImmediatePolicy } from "../../support/plugin-port.ts";

/** That each is built from its source to the byte: `test/unit/cli/plugin-build.test.ts`. */
describe("plugins of ours", () => {
  for (const name of firstParty) {
    it(`${name} has tests in its folder, which run at each load`, async () => {
      expect((await openPlugin(folderOf(name))).tests).not.to.have.length(0);
    });
  }

  for (const name of firstParty) {
    describe(name, () => {
      let plugin: ImmediatePolicy;
      before(async () => {
        plugin = await openFirstParty(name);
      });

      for (const [title, text] of hostileTexts()) {
        it(`reads 64 kB of ${JSON.stringify(title)} within its fuel, sent or answered [S27]`, async () => {
          const sent = makeAction({ arguments: { text } });
          for (const action of [sent, withOutput(makeAction(), { text })]) {
            expect(await plugin.settle(action)).not.to.have.property("error");
          }
        });
      }
    });
  }
});
