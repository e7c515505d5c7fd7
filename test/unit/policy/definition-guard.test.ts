import { expect } from "chai";
import { definitionFindings } from "../../../core/action/envelope.ts";
import type { Verdict } from "../../../core/action/policy.ts";
import { definitionGuard } from "../../../core/policy/definition-guard.ts";
import { makeAction } from "../../support/action.ts";

const digest = `sha256:${"0".repeat(64)}`;

describe("definitionGuard", () => {
  for (const finding of definitionFindings) {
    it(`blocks a tool that is withheld as ${finding}, says where it is reviewed, and adds no risk to its session`, () => {
      const tool_definition = { digest, annotations: {}, findings: [finding] };
      for (const phase of ["list", "input"] as const) {
        const verdict = definitionGuard.evaluate(makeAction({ phase, tool_definition })) as Verdict;
        expect(verdict.decision).to.equal("block");
        expect(verdict.risk).to.be.greaterThan(0);
        expect(verdict.findings.map(({ rule, session_risk: own }) => [rule, own])).to.deep.equal([
          [`definition.${finding}`, 0],
        ]);
        expect(verdict.findings[0]?.message).to.contain("`gateway definitions list`");
      }
    });
  }

  it("says nothing of others, nor of answers", () => {
    const output = makeAction({ phase: "output", tool_definition: { digest, annotations: {}, findings: ["changed"] } });
    for (const action of [makeAction({}), output]) {
      expect((definitionGuard.evaluate(action) as Verdict).decision).to.equal("abstain");
    }
  });
});
