import { expect } from "chai";
import { Registry } from "prom-client";
import { type Evaluation, type PolicyVerdict, wouldHave } from "../../../core/action/decision.ts";
import type { Finding, Mode } from "../../../core/action/policy.ts";
import { TrialLog } from "../../../core/observe/shadow-log.ts";
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

describe("wouldHave(evaluation)", () => {
  it("tells rules on trial of enforced policies, and all of policies on trial, once each, but for what they allow", () => {
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
    expect(wouldHave(evaluationOf([enforced], [tried])).map(({ rule, decision }) => [rule, decision])).to.deep.equal([
      ["p.b", "review"],
      ["q.a", "block"],
      ["q.b", "review"],
    ]);
  });

  it("tells 32 at most", () => {
    const many = Array.from({ length: 40 }, (_, index) => [`p.r${index}`, "block", "shadow"] as const);
    expect(wouldHave(evaluationOf([verdictOf(many)]))).to.have.length(32);
  });
});

describe("TrialLog.note(action, evaluation)", () => {
  const said = (rule: string) => evaluationOf([verdictOf([[rule, "review", "shadow"]])]);

  it("counts a rule, and keeps the last decision it was about", () => {
    const log = new TrialLog(new Registry());
    log.note(action, said("p.a"));
    const last = said("p.a");
    log.note({ ...action, time: "2026-01-02T00:00:00.000Z" }, last);
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
    const log = new TrialLog(new Registry());
    log.note(action, said("p.first"));
    for (let index = 0; index < 999; index++) log.note(action, said(`p.r${index}`));
    log.note(action, said("p.first"));
    for (let index = 0; index < 500; index++) log.note(action, said(`p.s${index}`));
    const { items } = log.list("acme", { limit: 2_000 });
    expect(items).to.have.length(1_000);
    expect(items.find(({ rule }) => rule === "p.first")?.count).to.equal(2);
  });
});
