import { expect } from "chai";
import fc from "fast-check";
import { decisions } from "../../../core/action/decision.ts";
import type { Evaluation } from "../../../core/action/evaluation.ts";
import { type Finding, type Mode, modes, type Policy, type Verdict } from "../../../core/action/policy.ts";
import { PolicyChain } from "../../../core/policy/chain.ts";
import { makeAction } from "../../support/action.ts";
import { manifest, PackFolders } from "../../support/policy-pack.ts";

const drawnFinding = (mode: Mode): fc.Arbitrary<Finding> =>
  fc.record({
    rule: fc.constantFrom("p.a", "p.b", "p.c"),
    decision: fc.constantFrom(...decisions),
    message: fc.constant("m"),
    severity: fc.constant("low"),
    risk: fc.integer({ min: 0, max: 100 }),
    mode: fc.constant(mode),
  });

/** A whole verdict: what its findings come to, and what it would redact. */
function verdictOf(findings: readonly Finding[], redacts: boolean): Verdict {
  const said = findings.filter(({ mode }) => mode === "enforce");
  const decision = said.reduce<Verdict["decision"]>((strictest, { decision: each }) => {
    if (strictest === "abstain") return each;
    return decisions.indexOf(each) > decisions.indexOf(strictest) ? each : strictest;
  }, "abstain");
  const redactions = redacts ? [{ rule: "p.a", pointer: "/output/text", start: 0, end: 4, replacement: "[x]" }] : [];
  return { decision, findings, risk: said.reduce((most, { risk }) => Math.max(most, risk), 0), redactions };
}

const drawnVerdict: fc.Arbitrary<Verdict> = fc
  .tuple(fc.array(drawnFinding("enforce"), { maxLength: 3 }), fc.boolean())
  .map(([findings, redacts]) => verdictOf(findings, redacts));
/** How a policy answers; also not at all, too late, and with nonsense. */
const drawnAnswer: fc.Arbitrary<Policy["evaluate"]> = fc.oneof(
  { weight: 6, arbitrary: drawnVerdict.map((verdict) => () => verdict) },
  fc.constant(() => {
    throw new Error("no");
  }),
  fc.constant(() => new Promise<Verdict>(() => undefined)),
  fc.constant(() => ({ decision: "permit" }) as unknown as Verdict),
);

function policy(evaluate: Policy["evaluate"], mode: Mode, name: string): Policy {
  return { ref: { kind: "plugin", name, version: "1.0.0", digest: "sha256:00", signer: null }, mode, evaluate };
}

const action = makeAction({ phase: "output", output: { text: "some text" } });

async function judge(policies: readonly Policy[]): Promise<Partial<Evaluation>> {
  const chain = new PolicyChain({
    policies,
    defaultDecision: "review",
    deadlineMs: 2,
    newId: () => "id",
    elapsedMs: () => 0,
  });
  const { shadow: _, ...counted } = await chain.evaluate(action);
  return counted;
}

describe("shadow mode", () => {
  it("changes nothing of what is decided, for whatever reason, whoever is on trial and however they answer [S63]", async () => {
    const enforced = fc.array(drawnAnswer, { maxLength: 3 });
    const tried = fc.array(fc.tuple(drawnAnswer, fc.nat({ max: 3 })), { minLength: 1, maxLength: 3 });
    await fc.assert(
      fc.asyncProperty(enforced, tried, async (answers, trials) => {
        const policies = answers.map((answer, index) => policy(answer, "enforce", `enforced-${index}`));
        const all = [...policies];
        for (const [index, [answer, at]] of trials.entries())
          all.splice(at, 0, policy(answer, "shadow", `tried-${index}`));
        expect(await judge(all)).to.deep.equal(await judge(policies));
      }),
      { numRuns: 300 },
    );
  });

  it("changes nothing of it where it is a rule's, and its pack's other rules count [S63]", async () => {
    const drawnRule = fc.record({
      decision: fc.constantFrom(...decisions),
      mode: fc.constantFrom(...modes),
      when: fc.constantFrom("true", 'tool == "read_note"', 'tool == "other"', "args.missing.deeper == 1", "1 / 0 == 1"),
    });
    const folders = new PackFolders();
    const findings = async (
      rules: readonly { decision: string; mode: Mode; when: string }[],
    ): Promise<Partial<Verdict>> => {
      // Rules that say the same are refused, so each says so in words of its own.
      const texts = rules.map(
        ({ decision, mode, when }, index) =>
          `  - { id: sample.r${index}, title: T, decision: ${decision}, mode: ${mode}, when: '(${when}) && ${index} == ${index}' }`,
      );
      const { policy: pack } = await folders.load({
        "pack.yaml": manifest(),
        "rules/a.yaml": `rules:\n${texts.join("\n")}`,
      });
      const verdict = await pack.evaluate(makeAction());
      return {
        ...verdict,
        findings: verdict.findings.filter(({ mode }) => mode === "enforce").map((each) => ({ ...each, rule: "" })),
      };
    };
    try {
      await fc.assert(
        fc.asyncProperty(fc.array(drawnRule, { minLength: 1, maxLength: 5 }), async (rules) => {
          const enforced = rules.filter(({ mode }) => mode === "enforce");
          if (enforced.length === 0) return;
          const { error, ...rest } = await findings(rules);
          const { error: same, ...alone } = await findings(enforced);
          const unnamed = ({ findings: each, ...verdict }: Partial<Verdict>): unknown => ({
            ...verdict,
            findings: each?.map(({ message: _, ...finding }) => finding),
          });
          expect(unnamed(rest)).to.deep.equal(unnamed(alone));
          expect(error === undefined).to.equal(same === undefined);
        }),
        { numRuns: 50 },
      );
    } finally {
      await folders.remove();
    }
  });
});
