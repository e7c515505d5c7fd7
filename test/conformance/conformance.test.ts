import { expect } from "chai";
import { type Rig, startRig } from "./rig.ts";
import { revisions, runSuite, type ScenarioResult } from "./suite.ts";
import { comparisonTable, newFailures, scoredCounts } from "./table.ts";

const suiteMs = 240_000;

/** What the fixture offers and the gateway does not: it keeps no stream to be resumed, so it must not promise one. */
const notOffered: ReadonlySet<string> = new Set(["server-sse-polling"]);

describe("the official conformance suite", function () {
  this.timeout(2 * suiteMs);
  let rig: Rig;

  before(async () => {
    rig = await startRig();
  });

  after(async () => {
    await rig?.stop();
  });

  for (const revision of revisions) {
    describe(`with the requirements of ${revision}`, () => {
      let direct: readonly ScenarioResult[];
      let governed: readonly ScenarioResult[];

      before(async () => {
        direct = await runSuite(rig.directUrl, revision);
        governed = await runSuite(rig.governedUrl, revision);
      });

      it("passes every scored check against the fixture itself", () => {
        const failed = direct.filter(({ scored, failures }) => scored && failures.length > 0);
        expect(failed).to.deep.equal([]);
        expect(direct.filter(({ scored, passed }) => scored && passed === 0)).to.deep.equal([]);
      });

      it("gives the same pass counts through the gateway", () => {
        const table = comparisonTable(direct, governed);
        expect(scoredCounts(governed), table).to.deep.equal(scoredCounts(direct));
      });

      it("fails no check through the gateway, scored or not, that the fixture itself passes", () => {
        const compared = direct.filter(({ scenario }) => !notOffered.has(scenario));
        const failures = compared.flatMap((one) =>
          newFailures(
            one,
            governed.find(({ scenario }) => scenario === one.scenario),
          ),
        );
        expect(failures).to.deep.equal([]);
      });

      it("refuses foreign Host and Origin headers at the gateway", () => {
        const result = governed.find(({ scenario }) => scenario === "dns-rebinding-protection");
        expect(result).to.deep.equal({ scenario: "dns-rebinding-protection", scored: true, passed: 2, failures: [] });
      });
    });
  }
});
