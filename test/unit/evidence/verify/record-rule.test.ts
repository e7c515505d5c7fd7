import { expect } from "chai";
import { VerifyingKey } from "../../../../core/action/signing-key.ts";
import { approvalRule } from "../../../../core/approval/evidence-rule.ts";
import { evidenceRules } from "../../../../core/compose/evidence-rules.ts";
import { verifyBundle } from "../../../../core/evidence/bundle/verify.ts";
import type { Reason } from "../../../../core/evidence/record/reason.ts";
import { type RecordRule, type RecordRules, RuleSet } from "../../../../core/evidence/verify/record-rule.ts";
import { killRule } from "../../../../core/kill/evidence-rule.ts";
import { ticketRule } from "../../../../core/ticket/evidence-rule.ts";
import { tamperCases } from "../../../vector/evidence/tamper.ts";

const findings: readonly (readonly [name: string, rule: RecordRule, reasons: readonly Reason[]])[] = [
  ["kill", killRule, ["allow_after_kill"]],
  ["approval", approvalRule, ["dispatch_without_allow", "approval_consumed_twice", "approval_mismatch"]],
  ["ticket", ticketRule, ["ticket_misused"]],
];

describe("the rules of a verification", () => {
  for (const [name, rule, reasons] of findings) {
    const cases = tamperCases.filter(({ reason }) => reasons.includes(reason));
    const others = evidenceRules.filter((each) => each !== rule) as unknown as RecordRules;

    it(`finds what the ${name} rule is for, and only with that rule`, () => {
      expect(new Set(cases.map(({ reason }) => reason))).to.deep.equal(new Set(reasons));
      for (const { name: what, reason, make } of cases) {
        expect(firstBad(make, evidenceRules), what).to.equal(reason);
        expect(reasons, what).to.not.include(firstBad(make, others));
      }
    });
  }

  it("are those of every feature that has some", () => {
    expect(evidenceRules).to.have.members(findings.map(([, rule]) => rule));
  });

  it("are never none", () => {
    expect(() => new RuleSet([] as unknown as RecordRules, 1)).to.throw(TypeError, "got none");
  });
});

function firstBad(make: (typeof tamperCases)[number]["make"], rules: RecordRules): Reason | undefined {
  const { bundle, keys, witness } = make();
  const trusted = keys.map((key) => VerifyingKey.parse(key) as VerifyingKey);
  const report = verifyBundle(bundle, {
    keys: trusted,
    rules,
    nowMs: Date.now(),
    ...(witness === undefined ? {} : { witness }),
  });
  return report.first_bad?.reason;
}
