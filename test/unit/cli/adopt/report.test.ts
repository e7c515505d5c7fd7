import { expect } from "chai";
import type { ActivePolicy } from "../../../../core/action/policy.ts";
import { proposePacks, Trial } from "../../../../core/cli/adopt/report.ts";
import type { EvidenceRecord } from "../../../../core/evidence/record/record.ts";

function decision(
  tool: string,
  would: readonly (readonly [decision: string, rule: string])[] = [],
  more: object = {},
): EvidenceRecord {
  return {
    kind: "decision",
    time: "2027-01-01T00:00:00.000Z",
    action: { phase: "input", protocol: "mcp", target: "files", tool, capability: "write", ...more },
    evaluation: { would_have: would.map(([word, rule]) => ({ decision: word, rule })) },
  } as unknown as EvidenceRecord;
}

const policies = ["trial", "baseline", "egress"].map(
  (name): ActivePolicy => ({
    kind: "pack",
    name,
    version: "1.0.0",
    digest: "",
    signer: null,
    mode: name === "trial" ? "enforce" : "shadow",
  }),
);

describe("the report of a trial", () => {
  it("counts calls of tools, once each, by the strictest thing that would have come of them", () => {
    const trial = new Trial();
    trial.add(decision("read_file"));
    trial.add(decision("write_file", [["review", "baseline.write"]]));
    trial.add(
      decision("write_file", [
        ["review", "baseline.write"],
        ["block", "egress.zone"],
      ]),
    );
    trial.add(decision("write_file", [], { phase: "output" }));
    trial.add(decision("tools/list"));
    trial.add(decision("chat", [], { protocol: "model" }));
    trial.add({ ...decision("write_file"), kind: "outcome" } as EvidenceRecord);
    expect([trial.calls, trial.held, trial.blocked]).to.deep.equal([3, 1, 1]);
    expect(trial.stopped.map(({ tool, calls, held, blocked }) => [tool, calls, held, blocked])).to.deep.equal([
      ["write_file", 2, 1, 1],
    ]);
  });

  it("proposes to enforce every pack, but for the rules that would hold more than one call in twenty", () => {
    const trial = new Trial();
    for (let at = 0; at < 100; at++) trial.add(decision("write_file", at < 6 ? [["review", "baseline.write"]] : []));
    for (let at = 0; at < 3; at++) trial.add(decision("a", [["review", "baseline.execute"]]));
    for (let at = 0; at < 50; at++) trial.add(decision("b", [["block", "egress.zone"]]));
    expect(proposePacks(trial, policies).map(({ name, shadowRules }) => [name, shadowRules])).to.deep.equal([
      ["baseline", []],
      ["egress", []],
    ]);
    for (let at = 0; at < 10; at++) trial.add(decision("write_file", [["review", "baseline.write"]]));
    expect(proposePacks(trial, policies)[0]?.shadowRules, "what blocks is enforced").to.deep.equal(["baseline.write"]);
  });
});
