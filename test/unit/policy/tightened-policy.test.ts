import { expect } from "chai";
import type { Policy, Redaction, Verdict } from "../../../core/action/policy.ts";
import { tightenPolicy } from "../../../core/policy/plugin-load.ts";
import { makeAction } from "../../support/action.ts";

const redaction: Redaction = { rule: "p.r", pointer: "/output/a", start: 0, end: 1, replacement: "" };

function saying(verdict: Verdict | Promise<Verdict>): Policy {
  const ref = { kind: "plugin", name: "p", version: "1.0.0", digest: "sha256:00", signer: null } as const;
  return { ref, mode: "enforce", evaluate: () => verdict };
}

describe("tightenPolicy(policy)", () => {
  for (const [said, counted] of [
    ["allow", "abstain"],
    ["review", "review"],
    ["block", "block"],
  ] as const) {
    it(`counts ${said} as ${counted}, and redacts as before`, () => {
      const policy = tightenPolicy(saying({ decision: said, findings: [], risk: 5, redactions: [redaction] }));
      const expected = { decision: counted, findings: [], risk: 5, redactions: [redaction] };
      expect(policy.evaluate(makeAction({ phase: "output" }))).to.deep.equal(expected);
    });

    it(`counts ${said} as ${counted} where it is said later`, async () => {
      const policy = tightenPolicy(saying(Promise.resolve({ decision: said, findings: [], risk: 5 })));
      const verdict = policy.evaluate(makeAction());
      expect(verdict).to.be.instanceOf(Promise);
      expect(await verdict).to.deep.equal({ decision: counted, findings: [], risk: 5 });
    });
  }

  it("reads and taints by the answers by which the policy does", () => {
    const plain = saying({ decision: "abstain", findings: [], risk: 0 });
    for (const says of [true, false]) {
      const own = { ...plain, taints: ["web"], readsOutput: () => says, taintsOutput: () => says };
      const policy = tightenPolicy(own);
      expect([policy.readsOutput?.("mcp"), policy.taintsOutput?.("mcp")]).to.deep.equal([says, says]);
      expect(policy.taints).to.deep.equal(["web"]);
    }
    const silent = tightenPolicy(plain);
    expect([silent.readsOutput?.("mcp"), silent.taintsOutput?.("mcp"), silent.taints]).to.deep.equal([true, false, []]);
  });
});
