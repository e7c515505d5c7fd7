import { expect } from "chai";
import fc from "fast-check";
import { type Decision, decisions } from "../../../core/action/decision.ts";
import { type ActionEnvelope, type Phase, phases } from "../../../core/action/envelope.ts";
import type { Evaluation } from "../../../core/action/evaluation.ts";
import type { Finding, Mode, Policy, Redaction, Verdict } from "../../../core/action/policy.ts";
import { PolicyChain, type PolicyChainOptions } from "../../../core/policy/chain.ts";
import { makeAction } from "../../support/action.ts";

const finding: Finding = { rule: "p.r", decision: "block", message: "m", severity: "low", risk: 10, mode: "enforce" };

function policy(name: string, evaluate: Policy["evaluate"], mode: Mode = "enforce"): Policy {
  return { ref: { kind: "plugin", name, version: "1.0.0", digest: "sha256:00", signer: null }, mode, evaluate };
}

function saying(decision: Verdict["decision"], risk = 10): Policy {
  const findings = decision === "abstain" ? [] : [{ ...finding, rule: `p.${decision}`, decision, risk }];
  return policy(decision, () => ({ decision, findings, risk: decision === "abstain" ? 0 : risk }));
}

function chainOf(policies: readonly Policy[], options: Partial<PolicyChainOptions> = {}): PolicyChain {
  let now = 0;
  const elapsedMs = (): number => (now += 0.0024);
  return new PolicyChain({
    policies,
    defaultDecision: "block",
    deadlineMs: 20,
    newId: () => "id-1",
    elapsedMs,
    ...options,
  });
}

function evaluate(policies: readonly Policy[], phase: Phase = "input"): Evaluation {
  const result = chainOf(policies).evaluate(makeAction({ phase }));
  if (result instanceof Promise) throw new TypeError("expected an answer at once");
  return result;
}

describe("Chain.evaluate(action)", () => {
  it("combines to the strictest decision and says who decided", () => {
    const evaluation = evaluate([saying("allow"), saying("block", 60), saying("review", 90)]);
    expect(evaluation).to.include({ id: "id-1", decision: "block", byDefault: false, risk: 90, phase: "input" });
    expect(evaluation.determining.map((each) => each.rule)).to.deep.equal(["p.block"]);
    expect(evaluation.verdicts.map((each) => each.policy.name)).to.deep.equal(["allow", "block", "review"]);
    expect(evaluation.verdicts.every((each) => Number.isInteger(each.durationUs))).to.equal(true);
    expect(Number.isInteger(evaluation.durationUs) && evaluation.durationUs > 0).to.equal(true);
  });

  it("searches a large answer in turns, and says of it what it says of one that is searched at once [S76]", async () => {
    const secret = "A\u200bKIA";
    const rows = Array.from({ length: 40_000 }, (_, at) => ({ at, note: at === 39_000 ? secret : "a note" }));
    const action = makeAction({ phase: "output", output: { rows, texts: ["AK", "IA"] } });
    const reader = policy("reader", ({ output }) => {
      const read = JSON.stringify((output as { readonly as_read?: unknown }).as_read ?? null);
      const message = `${read.split("AKIA").length - 1} times`;
      return {
        decision: "allow",
        findings: [{ ...finding, rule: `p.${message}`, decision: "allow", message }],
        risk: 0,
      };
    });
    let pauses = 0;
    const pause = async (): Promise<void> => void pauses++;
    const inTurns = chainOf([reader], { pause, elapsedMs: () => 1 }).evaluate(action);
    const atOnce = chainOf([reader], { elapsedMs: () => 1 }).evaluate(action);
    expect([inTurns instanceof Promise, atOnce instanceof Promise]).to.deep.equal([true, false]);
    expect(await inTurns).to.deep.equal(atOnce);
    expect(JSON.stringify(atOnce)).to.include("2 times");
    expect(pauses).to.be.at.least(2);
    const chain = chainOf([reader], { pause, elapsedMs: () => 1 });
    const begun = chain.evaluate(action);
    chain.replacePolicies([]);
    expect(await begun, "by the policies that were active when it began").to.deep.equal(atOnce);
    const small = makeAction({ phase: "output", output: { texts: ["AK", "IA"] } });
    expect(chainOf([reader], { pause }).evaluate(small)).to.not.be.instanceOf(Promise);
  });

  it("blocks a tool whose definition is withheld, whatever the policies say, and no other", () => {
    const digest = `sha256:${"0".repeat(64)}`;
    for (const phase of ["list", "input"] as const) {
      const judge = (findings?: readonly ["changed"]): Evaluation =>
        chainOf([saying("allow")]).evaluate(
          makeAction({ phase, tool_definition: { digest, annotations: {}, ...(findings && { findings }) } }),
        ) as Evaluation;
      expect([judge(["changed"]).decision, judge().decision]).to.deep.equal(["block", "allow"]);
      expect(judge(["changed"]).determining.map(({ rule }) => rule)).to.deep.equal(["definition.changed"]);
    }
  });

  it("decides alike in any order, and `block` wins over `allow`", () => {
    const said = fc.constantFrom<Verdict["decision"]>(...decisions, "abstain");
    fc.assert(
      fc.property(fc.array(said, { minLength: 1, maxLength: 8 }), fc.nat(), (words, seed) => {
        const forwards = evaluate(words.map((word) => saying(word)));
        const turned = words.toSorted((a, b) => ((a.length * seed) % 7) - ((b.length * seed) % 7)).reverse();
        expect(evaluate(turned.map((word) => saying(word))).decision).to.equal(forwards.decision);
        if (words.includes("block")) expect(forwards.decision).to.equal("block");
      }),
    );
  });

  describe("when reviewers are to be several", () => {
    const asking = (decision: Decision, approvals: number | undefined, mode: Mode = "enforce"): Policy =>
      policy(`${decision}-${approvals}`, () => {
        const one: Finding = { ...finding, decision, mode };
        const found = approvals === undefined ? one : { ...one, approvals };
        return { decision: mode === "shadow" ? "abstain" : decision, findings: [found], risk: 10 };
      });
    const rows: readonly [name: string, policies: readonly Policy[], approvals: number][] = [
      ["nobody says how many", [asking("review", undefined)], 1],
      ["one asks for ten", [asking("review", 10)], 10],
      ["two ask, whichever comes first", [asking("review", 3), asking("review", 2), asking("review", undefined)], 3],
      ["only a finding in shadow mode asks", [asking("review", 4, "shadow"), asking("review", 2)], 2],
      [
        "a policy without findings holds the action",
        [policy("bare", () => ({ decision: "review", findings: [], risk: 0 }))],
        1,
      ],
    ];
    for (const [name, policies, approvals] of rows) {
      it(`asks for ${approvals} where ${name}`, () => {
        expect(evaluate(policies)).to.include({ decision: "review", approvals });
        expect(evaluate(policies.toReversed())).to.include({ decision: "review", approvals });
      });
    }

    it("asks for 1 where the default holds the action, and where a trial asks for more", () => {
      const trial: Policy = { ...asking("review", 5), mode: "shadow" };
      expect(chainOf([trial], { defaultDecision: "review" }).evaluate(makeAction())).to.include({
        decision: "review",
        byDefault: true,
        approvals: 1,
      });
    });

    it("never asks for none, whatever was decided", () => {
      expect(evaluate([asking("review", 5), saying("block")])).to.include({ decision: "block", approvals: 1 });
      expect(evaluate([saying("allow")])).to.include({ decision: "allow", approvals: 1 });
    });
  });

  describe("when policies redact an output", () => {
    const output = { text: "ann@example.org and ben@example.org" };
    const place: Redaction = { rule: "p.email", pointer: "/output/text", start: 0, end: 15, replacement: "[email]" };
    const redacting = (name: string, redactions: unknown, mode: Mode = "enforce"): Policy =>
      policy(name, () => ({ decision: "allow", findings: [], risk: 0, redactions }) as Verdict, mode);
    const judge = (policies: readonly Policy[], changed: Partial<ActionEnvelope> = { phase: "output", output }) =>
      chainOf(policies).evaluate(makeAction(changed)) as Evaluation;

    it("merges what enforced policies ask for, in the order of the chain", () => {
      const [wider, later] = [
        { ...place, rule: "q.wide", start: 4, end: 19, replacement: "" },
        { ...place, start: 20, end: 35 },
      ];
      const { decision, redactions, verdicts } = judge([redacting("p", [later, place]), redacting("q", [wider])]);
      expect({ decision, redactions }).to.deep.equal({ decision: "allow", redactions: [{ ...place, end: 19 }, later] });
      expect(verdicts.map((each) => each.redactions)).to.deep.equal([[later, place], [wider]]);
      expect(Object.isFrozen(redactions) && redactions.every(Object.isFrozen)).to.equal(true);
    });

    it("keeps those of an answer that is blocked: it is on record", () => {
      expect(judge([redacting("p", [place]), saying("block")])).to.deep.include({
        decision: "block",
        redactions: [place],
      });
    });

    it("records those of a policy on trial, and applies none", () => {
      const { redactions, shadow } = judge([redacting("p", [place], "shadow"), saying("allow")]);
      expect(redactions).to.deep.equal([]);
      expect(shadow[0]?.redactions).to.deep.equal([place]);
    });

    const rows: readonly (readonly [name: string, redactions: unknown, error: string])[] = [
      ["is no list", {}, "expected `redactions` to be a list"],
      ["is too long", Array(257).fill(place), "expected `redactions` to be a list"],
      [
        "has a redaction of the arguments",
        [{ ...place, pointer: "/arguments/a" }],
        "expected a JSON Pointer below `/output`",
      ],
      ["leads nowhere", [place, { ...place, pointer: "/output/no" }], "expected redactions of texts of the output"],
      [
        "goes beyond its text",
        [{ ...place, end: 99 }],
        "expected redactions within their text, on code point boundaries",
      ],
    ];
    for (const [name, redactions, error] of rows) {
      it(`blocks where the list ${name}, and keeps what others redact`, () => {
        const evaluation = judge([redacting("p", redactions), redacting("q", [place])]);
        expect(evaluation).to.deep.include({ decision: "block", redactions: [place] });
        expect(evaluation.verdicts[0]).to.include({ decision: "block", error }).and.not.have.property("redactions");
        expect(judge([redacting("p", redactions, "shadow"), saying("allow")])).to.include({ decision: "allow" });
      });
    }

    for (const phase of phases.filter((each) => each !== "output")) {
      it(`blocks in phase ${phase}, where there is no answer`, () => {
        const evaluation = judge([redacting("p", [])], { phase });
        expect(evaluation).to.deep.include({ decision: "block", redactions: [] });
        expect(evaluation.verdicts[0]).to.include({ error: "expected `redactions` in phase `output` only" });
      });
    }
  });

  it("freezes what it answers", () => {
    const evaluation = evaluate([saying("block")]);
    for (const part of [
      evaluation,
      evaluation.verdicts,
      evaluation.verdicts[0],
      evaluation.determining,
      evaluation.verdicts[0]?.findings[0],
    ]) {
      expect(Object.isFrozen(part)).to.equal(true);
    }
  });

  describe("when no policy says anything", () => {
    const rows: readonly [phase: Phase, configured: Decision, decision: Decision][] = phases.flatMap((phase) =>
      decisions.map((configured) => [phase, configured, phase === "input" ? configured : "allow"] as const),
    ) as never;
    for (const [phase, configured, decision] of rows) {
      it(`decides ${decision} in phase ${phase} where the default is ${configured}`, () => {
        const chain = chainOf([saying("abstain")], { defaultDecision: configured });
        expect(chain.evaluate(makeAction({ phase }))).to.deep.include({ decision, byDefault: true, determining: [] });
      });
    }

    it("permits nothing by a finding that allows in a verdict that abstains", () => {
      const seen: Finding = { ...finding, rule: "p.seen", decision: "allow", risk: 70 };
      const noting = policy("noting", () => ({ decision: "abstain", findings: [seen], risk: 70 }));
      expect(evaluate([noting])).to.deep.include({ decision: "block", byDefault: true, determining: [], risk: 70 });
      const { decision, determining } = evaluate([noting, saying("allow")]);
      expect([decision, ...determining.map(({ rule }) => rule)]).to.deep.equal(["allow", "p.seen", "p.allow"]);
    });

    it("decides the default without any policy", () => {
      expect(evaluate([])).to.deep.include({ decision: "block", byDefault: true, verdicts: [] });
    });
  });

  describe("when a policy is in shadow mode", () => {
    it("records its verdict apart and never counts it", () => {
      const trial = policy("trial", () => ({ decision: "block", findings: [finding], risk: 100 }), "shadow");
      const evaluation = evaluate([trial, saying("allow", 5)]);
      expect(evaluation).to.include({ decision: "allow", risk: 5 });
      expect(evaluation.verdicts).to.have.length(1);
      expect(evaluation.shadow.map((each) => [each.policy.name, each.decision])).to.deep.equal([["trial", "block"]]);
    });

    it("does not turn its silence into an answer", () => {
      const trial = policy("trial", () => ({ decision: "allow", findings: [], risk: 0 }), "shadow");
      expect(evaluate([trial])).to.include({ decision: "block", byDefault: true });
    });

    it("does not let its failure block", () => {
      const broken = policy(
        "broken",
        () => {
          throw new Error("no");
        },
        "shadow",
      );
      expect(evaluate([broken, saying("allow")])).to.include({ decision: "allow" });
    });
  });

  describe("when a policy cannot answer", () => {
    const fine = { decision: "allow", findings: [], risk: 0 };
    const answers: readonly (readonly [name: string, answer: unknown, error: string])[] = [
      ["nothing", undefined, "expected a verdict, got none"],
      ["a word", "allow", "expected a verdict, got none"],
      ["an unknown decision", { ...fine, decision: "alow" }, "unknown decision"],
      ["an inherited decision", { ...fine, decision: "toString" }, "unknown decision"],
      ["a risk that is no number", { ...fine, risk: Number.NaN }, "expected `risk` from 0 to 100"],
      ["a risk below zero", { ...fine, risk: -1 }, "expected `risk` from 0 to 100"],
      ["no findings", { ...fine, findings: null }, "expected `findings` to be a list"],
      ["a finding that is none", { ...fine, findings: [null] }, "malformed finding"],
      ["a finding of no severity", { ...fine, findings: [{ ...finding, severity: "odd" }] }, "malformed finding"],
      ["a pointer that is no text", { ...fine, findings: [{ ...finding, pointer: 1 }] }, "malformed finding"],
      ...[0, 11, 1.5, -1, Number.NaN, "2", null].map(
        (approvals) =>
          [
            `a review that asks for ${JSON.stringify(approvals)} approvals`,
            { ...fine, decision: "review", findings: [{ ...finding, decision: "review", approvals }] },
            "malformed finding",
          ] as const,
      ),
      [
        "approvals asked by a finding that allows",
        { ...fine, findings: [{ ...finding, decision: "allow", approvals: 2 }] },
        "malformed finding",
      ],
      ["an error that allows", { ...fine, error: "x" }, "an error without `block`"],
      [
        "an `allow` over a finding that blocks",
        { ...fine, findings: [finding] },
        "a finding is stricter than the decision",
      ],
      [
        "an abstention over a finding that blocks",
        { ...fine, decision: "abstain", findings: [finding] },
        "a finding is stricter than the decision",
      ],
    ];
    for (const [name, answer, error] of answers) {
      it(`blocks for ${name}`, () => {
        const evaluation = evaluate([policy("odd", () => answer as Verdict), saying("allow")]);
        expect(evaluation).to.include({ decision: "block", byDefault: false });
        expect(evaluation.verdicts[0]).to.include({ decision: "block", error });
        expect(evaluation.determining.map((each) => each.rule)).to.deep.equal(["policy_error"]);
      });
    }

    it("blocks for one that throws", () => {
      const evaluation = evaluate([
        policy("odd", () => {
          throw new RangeError("boom");
        }),
      ]);
      expect(evaluation.verdicts[0]).to.include({ decision: "block", error: "RangeError: boom" });
    });

    it("blocks for a promise that rejects", async () => {
      const chain = chainOf([policy("odd", () => Promise.reject(new Error("boom"))), saying("allow")]);
      const evaluation = await chain.evaluate(makeAction());
      expect(evaluation).to.include({ decision: "block" });
      expect(evaluation.verdicts[0]).to.include({ error: "Error: boom" });
    });

    it("does not take an answer for late that came while the thread was held up [S77]", async () => {
      const answers = policy(
        "prompt",
        () => new Promise((resolve) => setImmediate(() => resolve({ decision: "allow", findings: [], risk: 0 }))),
      );
      const pending = chainOf([answers]).evaluate(makeAction());
      const end = performance.now() + 60;
      while (performance.now() < end);
      expect((await pending).decision).to.equal("allow");
    });

    it("gives one that waits for its turn the time that it may wait, and its deadline after that [S77]", async () => {
      const answersAfter = (ms: number): Policy =>
        policy("queued", async () => {
          await new Promise((resolve) => setTimeout(resolve, ms));
          return { decision: "allow", findings: [], risk: 0 };
        });
      const queued = { ...answersAfter(100), maxWaitMs: 60_000 };
      expect((await chainOf([queued]).evaluate(makeAction())).decision).to.equal("allow");
      const late = { ...answersAfter(60_000), maxWaitMs: 10 };
      const { verdicts } = await chainOf([late]).evaluate(makeAction());
      expect(verdicts[0]?.error).to.equal("Error: no answer within 30 ms");
    });

    it("blocks for one that is late, and waits no longer", async () => {
      const evaluation = await chainOf([policy("slow", () => new Promise(() => {})), saying("allow")]).evaluate(
        makeAction(),
      );
      expect(evaluation).to.include({ decision: "block" });
      expect(evaluation.verdicts[0]).to.include({ error: "Error: no answer within 20 ms" });
    });

    it("keeps an answer of its own making, whatever becomes of the policy's object", () => {
      const mine = { decision: "block", findings: [{ ...finding }], risk: 10 } as const;
      const evaluation = evaluate([policy("sly", () => mine)]);
      Object.assign(mine, { decision: "allow" });
      Object.assign(mine.findings[0] ?? {}, { decision: "allow" });
      expect(evaluation.verdicts[0]?.decision).to.equal("block");
      expect(evaluation.determining[0]?.decision).to.equal("block");
    });
  });

  describe("when a policy taints with what it finds", () => {
    const taintsOf = ({ verdicts, shadow }: Evaluation): unknown =>
      [...verdicts, ...shadow].flatMap(({ findings }) => findings.map(({ taints }) => taints));
    const tainting = (policies: readonly Policy[]): readonly Policy[] =>
      policies.map((each) => ({ ...each, taints: ["web"] }));

    it("adds its words to what each finding says, in both modes, where anything is sent or comes back", () => {
      const own = { ...finding, taints: ["page"] };
      const finds = [finding, own];
      const both = (["enforce", "shadow"] as const).map((mode) =>
        policy(mode, () => ({ decision: "block", findings: finds, risk: 10 }), mode),
      );
      for (const phase of ["input", "output"] as const) {
        expect(taintsOf(evaluate(tainting(both), phase))).to.deep.equal([
          ["web"],
          ["page", "web"],
          ["web"],
          ["page", "web"],
        ]);
        expect(taintsOf(evaluate(both, phase))).to.deep.equal([undefined, ["page"], undefined, ["page"]]);
      }
      expect(taintsOf(evaluate(tainting(both), "list"))).to.deep.equal(taintsOf(evaluate(both, "list")));
    });

    it("takes what it cannot judge for what it looks for, and finds nothing where it finds nothing", () => {
      const fails = policy(
        "fails",
        () => {
          throw new RangeError("boom");
        },
        "shadow",
      );
      expect(taintsOf(evaluate(tainting([fails]), "output"))).to.deep.equal([["web"]]);
      expect(taintsOf(evaluate(tainting([saying("abstain")]), "output"))).to.deep.equal([]);
    });
  });

  describe("when the policies are replaced meanwhile", () => {
    it("finishes with those it began with", async () => {
      let answer: (verdict: Verdict) => void = () => {};
      const slow = policy(
        "old",
        () =>
          new Promise((resolve) => {
            answer = resolve;
          }),
      );
      const chain = chainOf([slow], { deadlineMs: 1_000 });
      const pending = chain.evaluate(makeAction());
      chain.replacePolicies([saying("allow")]);
      answer({ decision: "review", findings: [], risk: 0 });
      expect((await pending).verdicts.map((each) => each.policy.name)).to.deep.equal(["old"]);
      expect(chain.policies.map((each) => each.name)).to.deep.equal(["allow"]);
      expect(await chain.evaluate(makeAction())).to.include({ decision: "allow" });
    });
  });
});

describe("Chain.readsOutput(protocol)", () => {
  const reader = (mode: Mode, readsOutput: boolean | undefined, taintsOutput: boolean | undefined): Policy => ({
    ...policy("reader", () => ({ decision: "abstain", findings: [], risk: 0 }), mode),
    ...(readsOutput === undefined ? {} : { readsOutput: () => readsOutput }),
    ...(taintsOutput === undefined ? {} : { taintsOutput: () => taintsOutput }),
  });
  const rows: readonly [mode: Mode, reads: boolean | undefined, taints: boolean | undefined, counts: boolean][] = [
    ["enforce", undefined, undefined, true],
    ["enforce", true, false, true],
    ["enforce", false, undefined, false],
    ["shadow", undefined, undefined, false],
    ["shadow", true, false, false],
    ["shadow", true, true, true],
  ];
  for (const [mode, reads, taints, counts] of rows) {
    it(`is ${counts} in mode ${mode} for one that reads it: ${reads}, and taints: ${taints}`, () => {
      expect(chainOf([reader("enforce", false, false), reader(mode, reads, taints)]).readsOutput("mcp")).to.equal(
        counts,
      );
    });
  }
});

describe("new Chain(options)", () => {
  it("refuses a default that is no decision and a deadline that never comes", () => {
    expect(() => chainOf([], { defaultDecision: "abstain" as Decision })).to.throw(TypeError, "`defaultDecision`");
    for (const deadlineMs of [0, Number.NaN, Number.POSITIVE_INFINITY]) {
      expect(() => chainOf([], { deadlineMs })).to.throw(TypeError, "`deadlineMs`");
    }
  });
});
