import { expect } from "chai";
import { type Evaluation, type PolicyVerdict, shadowDecisions } from "../../../core/action/evaluation.ts";
import type { Finding, Mode } from "../../../core/action/policy.ts";
import { MetricRegistry } from "../../../core/observe/metric-registry.ts";
import { ShadowLog } from "../../../core/observe/shadow-log.ts";
import { makeAction } from "../../support/action.ts";
import { makeEvaluation } from "../../support/ledger-world.ts";

const action = makeAction();

function verdictOf(
  rules: readonly (readonly [rule: string, decision: Finding["decision"], mode: Mode])[],
): PolicyVerdict {
  const policy = { kind: "pack", name: "p", version: "1.0.0", digest: "sha256:00", signer: null } as const;
  const findings = rules.map(([rule, decision, mode]) => {
    return { rule, decision, mode, message: "m", severity: "low", risk: 10 } as const;
  });
  return { policy, decision: "block", findings, risk: 10, durationUs: 1 };
}

function evaluationOf(verdicts: PolicyVerdict[], shadow: PolicyVerdict[] = []): Evaluation {
  return { ...makeEvaluation(action), verdicts, shadow };
}

describe("shadowDecisions(evaluation)", () => {
  it("lists shadow rules of enforced policies and all rules of shadow policies, once each, without those that allow", () => {
    const enforced = verdictOf([
      ["p.a", "block", "enforce"],
      ["p.b", "review", "shadow"],
      ["p.b", "review", "shadow"],
      ["p.c", "allow", "shadow"],
    ]);
    const tried = verdictOf([
      ["q.a", "block", "enforce"],
      ["q.b", "review", "shadow"],
      ["q.c", "allow", "enforce"],
    ]);
    expect(
      shadowDecisions(evaluationOf([enforced], [tried])).map(({ rule, decision }) => [rule, decision]),
    ).to.deep.equal([
      ["p.b", "review"],
      ["q.a", "block"],
      ["q.b", "review"],
    ]);
  });

  it("lists at most 32", () => {
    const many = Array.from({ length: 40 }, (_, index) => [`p.r${index}`, "block", "shadow"] as const);
    expect(shadowDecisions(evaluationOf([verdictOf(many)]))).to.have.length(32);
  });
});

describe("ShadowLog.recorded(action, evaluation)", () => {
  const said = (rule: string) => evaluationOf([verdictOf([[rule, "review", "shadow"]])]);

  it("counts a rule, and keeps the last decision it was about", () => {
    const log = new ShadowLog(new MetricRegistry());
    log.recorded(action, said("p.a"));
    const last = said("p.a");
    log.recorded({ ...action, time: "2026-01-02T00:00:00.000Z" }, last);
    expect(log.list("acme", { limit: 10 }).items).to.deep.equal([
      {
        rule: "p.a",
        decision: "review",
        policy: { kind: "pack", name: "p" },
        count: 2,
        last_time: "2026-01-02T00:00:00.000Z",
        last_decision: last.id,
      },
    ]);
    expect(log.list("other", { limit: 10 })).to.deep.equal({ items: [], next: null });
  });

  it("remembers the thousand rules that spoke last, however many names a policy has for them [S68]", () => {
    const log = new ShadowLog(new MetricRegistry());
    log.recorded(action, said("p.first"));
    for (let index = 0; index < 999; index++) log.recorded(action, said(`p.r${index}`));
    log.recorded(action, said("p.first"));
    for (let index = 0; index < 500; index++) log.recorded(action, said(`p.s${index}`));
    const { items } = log.list("acme", { limit: 2_000 });
    expect(items).to.have.length(1_000);
    expect(items.find(({ rule }) => rule === "p.first")?.count).to.equal(2);
  });
});
