import { expect } from "chai";
import fc from "fast-check";
import { decisions } from "../../../../core/action/decision.ts";
import { isJsonObject, type Json } from "../../../../core/action/json.ts";
import { severities } from "../../../../core/action/policy.ts";
import { PluginBreach } from "../../../../core/plugin/breach.ts";
import { readPluginVerdict } from "../../../../core/plugin/plugin-verdict.ts";
import type { Finding, Redaction, Verdict } from "../../../../sdk/contract/index.ts";
import { PluginFault } from "../../../../sdk/harness/fault.ts";
import { readVerdict } from "../../../../sdk/harness/verdict.ts";
import { changeAt, compileSchema, pathsIn } from "../../../support/contract.ts";
import { roundsOf } from "../../../support/rounds.ts";

describe("the SDK's contract of verdicts", () => {
  const isVerdict = compileSchema("verdict");

  /** Whether gateway, harness and schema take a verdict. */
  const takenBy = (verdict: Json, phase: "input" | "output" = "output"): readonly boolean[] => {
    const bytes = Buffer.from(JSON.stringify(verdict));
    const taken = (read: () => unknown, Refusal: new (...values: never[]) => Error): boolean => {
      try {
        read();
        return true;
      } catch (error) {
        if (error instanceof Refusal) return false;
        throw error;
      }
    };
    return [
      taken(() => readPluginVerdict(bytes, "sample", phase), PluginBreach),
      taken(() => readVerdict(bytes, "sample", phase), PluginFault),
      isVerdict(verdict),
    ];
  };
  const finding: Finding = { rule: "sample.a", decision: "block", message: "m", severity: "low", risk: 1 };
  const redaction: Redaction = { rule: "sample.a", pointer: "/output/a", start: 0, end: 1, replacement: "" };
  const blocking = (...changes: readonly object[]): Json =>
    ({ decision: "block", findings: changes.map((change) => ({ ...finding, ...change })) }) as Json;
  const redacting = (...changes: readonly object[]): Json =>
    ({
      decision: "abstain",
      findings: [],
      redactions: changes.map((change) => ({ ...redaction, ...change })),
    }) as Json;

  const good: Json = {
    decision: "review",
    findings: [
      { ...finding, decision: "allow", pointer: "/arguments/a~1b" },
      { ...finding, decision: "review", approvals: 10, message: "é ключ 名 100 % C:\\user" },
    ],
    redactions: [{ ...redaction }],
  } satisfies Verdict;

  it("takes what the gateway takes", () => {
    const all: readonly Json[] = [
      good,
      { decision: "abstain", findings: [] },
      { decision: "allow", findings: [] },
      { decision: "abstain", findings: [{ ...finding, decision: "allow" }] },
      blocking({}, { decision: "allow" }),
      blocking(...Array(256).fill({ severity: "critical", risk: 100, rule: `sample.${"a".repeat(121)}` })),
      blocking({ message: "m".repeat(512), pointer: `/${"p".repeat(1_023)}` }),
      redacting(...Array(256).fill({ replacement: "[x]".padEnd(64) })),
    ];
    for (const verdict of all)
      expect(takenBy(verdict), JSON.stringify(verdict).slice(0, 200)).to.deep.equal([true, true, true]);
  });

  it("refuses what the gateway refuses", () => {
    const wrong: readonly Json[] = [
      null,
      [],
      {},
      { decision: "block" },
      { decision: "block", findings: [] },
      { decision: "review", findings: [] },
      { decision: "deny", findings: [] },
      { ...good, error: "x" },
      { ...good, decision: "block" },
      { ...good, decision: "abstain" },
      { decision: "allow", findings: {} },
      { decision: "block", findings: [null] },
      { ...good, redactions: null },
      { ...good, redactions: {} },
      blocking(...Array(257).fill({})),
      ...["sample", "Sample.a", "sample.", "sample.a.", "sample.é", `sample.${"a".repeat(122)}`, 1, ""].map((rule) =>
        blocking({ rule }),
      ),
      ...["", "m".repeat(513), "a\nb", "a\u200bb", "a\u00a0b", "a\u202e", "\ud800", "\u2800", "\\u{200b}", 1].map(
        (message) => blocking({ message }),
      ),
      ...["none", "HIGH", 3].map((severity) => blocking({ severity })),
      ...[-1, 101, 1.5, "1", null].map((risk) => blocking({ risk })),
      ...["arguments", "", "/~2", "/~", `/${"p".repeat(1_024)}`, "/\0", "/\ud800", 1].map((pointer) =>
        blocking({ pointer }),
      ),
      blocking({ approvals: 1 }),
      ...[0, 11, 1.5].map((approvals) => ({
        decision: "review",
        findings: [{ ...finding, decision: "review", approvals }],
      })),
      blocking({ more: 1 }),
      redacting(...Array(257).fill({})),
      ...["/output", "/arguments/a", "output/a", "/output/~"].map((pointer) => redacting({ pointer })),
      ...["é", "x".repeat(65), "\n", 1].map((replacement) => redacting({ replacement })),
      ...[-1, 0.5, "0"].map((start) => redacting({ start })),
      redacting({ end: 2 ** 53 }),
      redacting({ text: "x" }),
    ].map((each) => each as Json);
    for (const verdict of wrong)
      expect(takenBy(verdict), JSON.stringify(verdict).slice(0, 200)).to.deep.equal([false, false, false]);
  });

  it("leaves to the gateway, and to the harness, what no schema says", () => {
    const beyond: readonly (readonly [verdict: Json, phase: "input" | "output"])[] = [
      [blocking({ rule: "other.a" }), "input"],
      [blocking({ rule: "sampler.a" }), "input"],
      [blocking({ message: "𐐀".repeat(257) }), "input"],
      [redacting({ start: 1 }), "output"],
      [redacting({}), "input"],
      [{ decision: "abstain", findings: [], redactions: [] }, "input"],
    ];
    for (const [verdict, phase] of beyond) expect(takenBy(verdict, phase)).to.deep.equal([false, false, true]);
  });

  it("agrees with the gateway about any change of a good one", () => {
    const noise = fc.oneof(
      fc.constantFrom<Json>(
        ...decisions,
        ...severities,
        "abstain",
        "sample.b",
        "/arguments/x",
        "/output/x",
        null,
        [],
        {},
      ),
      fc.integer({ min: -2, max: 300 }),
      fc.string({ unit: "binary-ascii", maxLength: 8 }),
      fc.double({ noNaN: true }),
    );
    const paths = pathsIn(good);
    fc.assert(
      fc.property(fc.constantFrom(...paths), noise, fc.boolean(), (path, value, drop) => {
        const changed = changeAt(good, path, drop ? undefined : (JSON.parse(JSON.stringify(value)) as Json));
        const [byGateway, byHarness, bySchema] = takenBy(changed);
        expect(byHarness, JSON.stringify(changed)).to.equal(byGateway);
        expect(bySchema && !isBeyond(changed), JSON.stringify(changed)).to.equal(byGateway);
      }),
      { numRuns: roundsOf(500, 20_000) },
    );
  });

  for (const [what, text] of [
    ["a member given twice", '{"decision":"abstain","decision":"abstain","findings":[]}'],
    ["bytes that are no UTF-8", '{"decision":"abstain","findings":[],"\xff":1}'],
    ["a byte order mark", '\ufeff{"decision":"abstain","findings":[]}'],
    ["what is no JSON", "block"],
    ["nothing", ""],
  ] as const) {
    it(`refuses ${what}, as the gateway does`, () => {
      const bytes = Buffer.from(text, text.includes("\xff") ? "latin1" : "utf8");
      expect(() => readPluginVerdict(bytes, "sample", "input")).to.throw(PluginBreach);
      expect(() => readVerdict(bytes, "sample", "input")).to.throw(PluginFault, "malformed_verdict");
    });
  }
});

/** Whether a verdict breaks a rule that no schema says: foreign rules, and spans that end before they begin. */
function isBeyond(value: Json): boolean {
  if (!isJsonObject(value)) return Array.isArray(value) && value.some(isBeyond);
  const { rule, start, end } = value;
  if (typeof rule === "string" && !rule.startsWith("sample.")) return true;
  if (typeof start === "number" && typeof end === "number" && start >= end) return true;
  return Object.values(value).some(isBeyond);
}
