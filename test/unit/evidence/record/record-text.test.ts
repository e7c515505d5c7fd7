import { expect } from "chai";
import fc from "fast-check";
import { canonicalJson } from "../../../../core/action/canonical-json.ts";
import { decisions } from "../../../../core/action/decision.ts";
import type { ActionEnvelope } from "../../../../core/action/envelope.ts";
import type { PolicyVerdict } from "../../../../core/action/evaluation.ts";
import type { Json, JsonObject } from "../../../../core/action/json.ts";
import {
  decisionContent,
  outcomeContent,
  recordEvaluation,
  sealActionRecord,
  sealEventRecord,
} from "../../../../core/evidence/chain/seal.ts";
import { isChainFault } from "../../../../core/evidence/record/reason.ts";
import { readRecord } from "../../../../core/evidence/record/record-text.ts";
import { makeEvaluation, newAction } from "../../../support/ledger-world.ts";

const stamp = {
  clock: () => 1_777_000_000_000,
  random: (count: number) => new Uint8Array(count).fill(7),
  writer: { epoch: 3, id: "gateway-a" },
  configDigest: "sha256:00",
};
const chain = { tenant: "acme", id: "c", head: { seq: 3, hash: "0".repeat(64) } };
const session = { id: "s", index: 2, label: undefined, prev_hash: "0".repeat(64), transport: "http" as const };
const bound = { fingerprint: "sha256:11", argumentsDigest: "sha256:22", facts: undefined };
const boundWithFacts = { ...bound, facts: { digest: "sha256:44", effect: "delete" } } as const;

const text = fc.string({ unit: "grapheme" });
const anyAction = fc.record({
  tool: text,
  target: text,
  task: fc.option(text),
  client: fc.record({ version: text, name: text, address: text }),
  principal: fc.record({ role: fc.constantFrom("admin", "viewer"), keyId: text, id: text }),
  definition: fc.option(text),
});

const trial: Pick<PolicyVerdict, "findings"> = {
  findings: ["p.b", "p.a"].map((rule) => {
    return { rule, decision: "block", message: "m", severity: "low", risk: 1, mode: "enforce" };
  }),
};
const redaction = { rule: "p.b", pointer: "/output/a", start: 0, end: 2, replacement: "[r]" };

describe("The text of a sealed record", () => {
  it("is the RFC 8785 text of every decision and outcome", () => {
    fc.assert(
      fc.property(anyAction, fc.constantFrom(...decisions), fc.option(text), text, (drawn, decision, label, reason) => {
        const action = actionOf(drawn);
        const [verdict] = makeEvaluation(action).verdicts as [PolicyVerdict];
        const redactions = [redaction, { ...redaction, rule: "p.a" }, { ...redaction, start: 1 }];
        const judged = { ...makeEvaluation(action, decision), shadow: [{ ...verdict, ...trial, redactions }] };
        const placed = { ...session, label: label ?? undefined };
        for (const body of [
          decisionContent(action, judged, bound),
          decisionContent(action, judged, boundWithFacts),
          outcomeContent(action, { status: "success", output: null }, recordEvaluation(judged), bound, "sha256:33"),
          outcomeContent(action, { status: "unknown", reason }, undefined, bound, undefined),
        ]) {
          const sealed = sealActionRecord(body, chain, placed, stamp);
          expect(sealed.text).to.equal(canonicalJson(JSON.parse(sealed.text) as Json));
          expect(JSON.parse(sealed.text)).to.deep.equal(JSON.parse(JSON.stringify(sealed.record)));
        }
      }),
      { numRuns: 200 },
    );
  });

  it("says which rules would have held or blocked it, were they enforced, and nothing where none would", () => {
    const action = newAction();
    const evaluation = makeEvaluation(action);
    const [verdict] = evaluation.verdicts as [PolicyVerdict];
    const tried = decisionContent(action, { ...evaluation, shadow: [{ ...verdict, ...trial }] }, bound);
    expect(tried.evaluation?.would_have).to.deep.equal([
      { decision: "block", rule: "p.b" },
      { decision: "block", rule: "p.a" },
    ]);
    expect(sealActionRecord(decisionContent(action, evaluation, bound), chain, session, stamp).text).not.to.include(
      "would_have",
    );
  });

  it("counts redactions by rule, and says neither what nor where", () => {
    const action = newAction();
    const evaluation = makeEvaluation(action);
    const [verdict] = evaluation.verdicts as [PolicyVerdict];
    const redactions = [redaction, { ...redaction, rule: "p.a" }, { ...redaction, start: 1 }];
    const { evaluation: recorded } = decisionContent(
      action,
      { ...evaluation, verdicts: [{ ...verdict, redactions }] },
      bound,
    );
    expect(recorded?.policies[0]?.redactions).to.deep.equal([
      { count: 2, rule: "p.b" },
      { count: 1, rule: "p.a" },
    ]);
    expect(sealActionRecord(decisionContent(action, evaluation, bound), chain, session, stamp).text).not.to.include(
      "redactions",
    );
  });

  it("is the RFC 8785 text of every event, whatever its detail", () => {
    fc.assert(
      fc.property(fc.dictionary(text, fc.jsonValue()), (detail) => {
        const sealed = sealEventRecord({ kind: "admin", detail: detail as JsonObject }, chain, stamp);
        expect(sealed.text).to.equal(canonicalJson(sealed.record as unknown as Json));
        expect(isChainFault(readRecord(sealed.text))).to.equal(false);
      }),
      { numRuns: 200 },
    );
  });

  it("takes the text `\\ud800`, and refuses the lone surrogate it looks like", () => {
    const said = sealActionRecord(decisionOf(newAction({ tool: "\\ud800" })), chain, session, stamp).text;
    expect((JSON.parse(said) as { action: { tool: string } }).action.tool).to.equal("\\ud800");
    expect(isChainFault(readRecord(said))).to.equal(false);
    expect(() => sealActionRecord(decisionOf(newAction({ tool: "\ud800" })), chain, session, stamp)).to.throw(
      /surrogate/i,
    );
  });
});

describe("readRecord(text)", () => {
  const sound = sealActionRecord(decisionOf(newAction()), chain, session, stamp).text;

  it("reads what was sealed", () => {
    const record = readRecord(sound);
    expect(isChainFault(record)).to.equal(false);
    expect(JSON.stringify(record)).to.equal(sound);
  });

  for (const [what, changed, reason, fault] of [
    ["bytes that are not JSON", sound.slice(1), "malformed", "expected JSON, got other bytes"],
    ["a list", "[]", "bad_schema", "expected a JSON object"],
    ["white space", sound.replace(":", ": "), "not_canonical", "expected canonical JSON (RFC 8785)"],
    ["members out of order", `{"zz":1,${sound.slice(1)}`, "not_canonical", "expected canonical JSON (RFC 8785)"],
    [
      "a member twice",
      sound.replace('"kind":', '"kind":"outcome","kind":'),
      "not_canonical",
      "expected canonical JSON (RFC 8785)",
    ],
    [
      "an escape that is not needed",
      sound.replace("acme", "\\u0061cme"),
      "not_canonical",
      "expected canonical JSON (RFC 8785)",
    ],
    [
      "a number in another form",
      sound.replace('"seq":4', '"seq":4.0'),
      "not_canonical",
      "expected canonical JSON (RFC 8785)",
    ],
    ["another schema", sound.replace("record-v1", "record-v2"), "bad_schema", "expected schema `evidence-record-v1`"],
    [
      "an unknown kind",
      sound.replace('"decision","prev', '"guess","prev'),
      "bad_schema",
      "expected a known record kind",
    ],
    ["no tenant", sound.replace('"tenant":"acme",', ""), "bad_schema", "expected `tenant` to be a string"],
    ["a fraction for a place", sound.replace('"seq":4', '"seq":4.5'), "bad_schema", "expected `seq` to be an integer"],
    ["no epoch", sound.replace('"epoch":3,', ""), "bad_schema", "expected `writer` with an integer epoch"],
    ["no action", sound.replace('"action":{', '"axtion":{'), "bad_schema", "expected `action` with an id"],
    [
      "no session index",
      sound.replace('"index":2,', ""),
      "bad_schema",
      "expected `session` with an id and an integer index",
    ],
  ] as const) {
    it(`refuses ${what}`, () => {
      expect(changed).to.not.equal(sound);
      expect(readRecord(changed)).to.deep.equal({ reason, fault });
    });
  }
});

function actionOf(drawn: {
  readonly tool: string;
  readonly target: string;
  readonly task: string | null;
  readonly client: ActionEnvelope["client"];
  readonly principal: ActionEnvelope["principal"];
  readonly definition: string | null;
}): ActionEnvelope {
  const { definition, ...changed } = drawn;
  return newAction(
    definition === null ? changed : { ...changed, tool_definition: { digest: definition, annotations: {} } },
  );
}

function decisionOf(action: ActionEnvelope): ReturnType<typeof decisionContent> {
  return decisionContent(action, makeEvaluation(action), bound);
}
