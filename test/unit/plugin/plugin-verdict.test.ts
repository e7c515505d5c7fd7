import { expect } from "chai";
import { type Phase, phases } from "../../../core/action/envelope.ts";
import type { Json } from "../../../core/action/json.ts";
import type { Verdict } from "../../../core/action/policy.ts";
import { maxRedactions } from "../../../core/action/redaction.ts";
import { PluginBreach } from "../../../core/plugin/breach.ts";
import { readPluginVerdict, VerdictReader } from "../../../core/plugin/plugin-verdict.ts";

const redaction = { rule: "sample.email", pointer: "/output/text", start: 0, end: 3, replacement: "[email]" };

function read(answer: Json, phase: Phase = "output"): Verdict {
  return readPluginVerdict(new TextEncoder().encode(JSON.stringify(answer)), "sample", phase);
}

function saying(redactions: Json, decision = "abstain"): Json {
  return { decision, findings: [], redactions };
}

function expectMalformed(run: () => unknown, said: string): void {
  expect(run).to.throw(PluginBreach, said).with.property("reason", "malformed_verdict");
}

describe("readPluginVerdict(answer, name, phase)", () => {
  for (const decision of ["abstain", "allow"]) {
    it(`reads redactions of an answer that says ${decision}`, () => {
      expect(read(saying([redaction, redaction], decision))).to.deep.equal({
        decision,
        findings: [],
        risk: 0,
        redactions: [redaction, redaction],
      });
    });
  }

  it("reads findings that allow of one that abstains, and no stricter ones", () => {
    const finding = { rule: "sample.seen", decision: "allow", message: "seen", severity: "low", risk: 7 };
    const { decision, risk } = read({ decision: "abstain", findings: [finding] }, "input");
    expect([decision, risk]).to.deep.equal(["abstain", 7]);
    for (const strict of ["review", "block"]) {
      const findings = [finding, { ...finding, decision: strict }];
      expectMalformed(() => read({ decision: "abstain", findings }), "the decision of the strictest finding");
      expectMalformed(() => read({ decision: "allow", findings }), "the decision of the strictest finding");
    }
  });

  it("reads as many as there may be, and not one more", () => {
    expect(read(saying(Array(maxRedactions).fill(redaction))).redactions).to.have.length(maxRedactions);
    expectMalformed(() => read(saying(Array(maxRedactions + 1).fill(redaction))), `at most ${maxRedactions}`);
  });

  for (const phase of phases.filter((each) => each !== "output")) {
    it(`takes none in phase ${phase}`, () => {
      expectMalformed(() => read(saying([redaction]), phase), "in phase `output` only");
      expectMalformed(() => read(saying([]), phase), "in phase `output` only");
    });
  }

  const wrong: readonly (readonly [name: string, redactions: Json, said: string])[] = [
    ["no list", { 0: redaction }, "a list of at most"],
    ["nothing in a list", [null], "an object"],
    ["a redaction without a rule", [{ ...redaction, rule: 1 }], "a rule"],
    ["another plugin's rule", [{ ...redaction, rule: "sampler.email" }], "begin with `sample.`, the plugin's name"],
    ["a rule that is its name alone", [{ ...redaction, rule: "sample" }], "begin with `sample.`"],
    ["an unknown member", [{ ...redaction, text: "a@b" }], "known members"],
    ["a redaction of arguments", [{ ...redaction, pointer: "/arguments/text" }], "below `/output`"],
    ["one good and one bad", [redaction, { ...redaction, start: 3 }], "`start` below `end`"],
  ];
  for (const [name, redactions, said] of wrong) {
    it(`refuses ${name}`, () => expectMalformed(() => read(saying(redactions)), said));
  }

  it("[S35] reads a pointer in no time, however it is made", () => {
    const pointer = `${"/".repeat(34)}~`;
    const finding = { rule: "sample.a", decision: "block", message: "m", severity: "low", risk: 1, pointer };
    expectMalformed(() => read({ decision: "block", findings: [finding] }), "a JSON Pointer");
    expectMalformed(() => read(saying([{ ...redaction, pointer: `/output${pointer}` }])), "a JSON Pointer");
  });
});

describe("VerdictReader.read(answer, phase)", () => {
  const bytesOf = (answer: Json): Uint8Array => new TextEncoder().encode(JSON.stringify(answer));

  it("reads an answer that is as the last was, and one that is not, as `readPluginVerdict` does", () => {
    const reader = new VerdictReader("sample");
    const answers = [saying([redaction]), saying([]), saying([]), saying([redaction], "allow")].map(bytesOf);
    for (const answer of answers) {
      for (let round = 0; round < 2; round++) {
        expect(reader.read(answer, "output")).to.deep.equal(readPluginVerdict(answer, "sample", "output"));
      }
    }
  });

  it("judges the same bytes anew in another phase, and when they are changed in place", () => {
    const reader = new VerdictReader("sample");
    const answer = bytesOf(saying([redaction]));
    expect(reader.read(answer, "output").redactions).to.have.length(1);
    expectMalformed(() => reader.read(answer, "input"), "redactions in phase `output` only");
    answer.fill(0x20);
    expectMalformed(() => reader.read(answer, "output"), "strict JSON");
  });
});
