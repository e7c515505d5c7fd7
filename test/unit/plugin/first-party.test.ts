import { expect } from "chai";
import { openPlugin } from "../../../core/cli/plugin-folder.ts";
import { buildAssembly } from "../../support/assembly.ts";
import { firstParty, folderOf, moduleOfFirstParty } from "../../support/first-party.ts";

describe("plugins of ours", () => {
  for (const name of firstParty) {
    it(`${name} is built from its source to the byte`, async function () {
      this.timeout(60_000);
      const built = await buildAssembly(`plugins/${name}`);
      expect(built.equals(moduleOfFirstParty(name))).to.equal(true);
    });

    it(`${name} has tests in its folder, which run at each load`, async () => {
      expect((await openPlugin(folderOf(name))).tests).not.to.have.length(0);
    });
  }
});
