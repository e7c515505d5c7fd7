import { randomBytes } from "node:crypto";
import { resourceFromAttributes } from "@opentelemetry/resources";
import type { ReadableSpan } from "@opentelemetry/sdk-trace";
import { expect } from "chai";
import type { Evaluation } from "../../../../core/action/evaluation.ts";
import { noSpan, type Span } from "../../../../core/action/trace.ts";
import { type ModelAsked, RoadTracer } from "../../../../core/observe/otlp/tracer.ts";
import { makeAction } from "../../../support/action.ts";

interface Rig {
  readonly ended: ReadableSpan[];
  readonly asked: ModelAsked[];
  begin(protocol: "mcp" | "model"): Span;
}

function rig(samplePercent: number = 100): Rig {
  const ended: ReadableSpan[] = [];
  const asked: ModelAsked[] = [];
  const nothing = async (): Promise<void> => undefined;
  const processor = {
    onStart: () => undefined,
    onEnd: (span: ReadableSpan) => void ended.push(span),
    forceFlush: nothing,
    shutdown: nothing,
  };
  const tracer = new RoadTracer({
    resource: resourceFromAttributes({}),
    processor,
    samplePercent,
    random: randomBytes,
    scope: { name: "test", version: "1" },
    providers: new Map([["claude", "anthropic"]]),
    onModelAsked: (one) => void asked.push(one),
  });
  const requests = {
    mcp: { protocol: "mcp", method: "tools/call", parent: undefined },
    model: { protocol: "model", api: "chat", parent: undefined },
  } as const;
  return { ended, asked, begin: (protocol) => tracer.begin(requests[protocol]) };
}

function evaluationOf(rules: readonly string[]): Evaluation {
  const determining = rules.map((rule) => ({ rule, decision: "block" })) as unknown as Evaluation["determining"];
  return { id: "e", phase: "input", decision: "block", determining } as unknown as Evaluation;
}

describe("a span of the road", () => {
  it("has a child for the first 32 judgements of an answer, and for no more", () => {
    const { ended, begin } = rig();
    const request = begin("mcp");
    const steps = Array.from({ length: 100 }, () => request.begin("judge_output"));
    expect(steps.filter((step) => step === noSpan)).to.have.length(68);
    for (const step of steps) step.end();
    request.begin("record_outcome").end();
    expect(ended.map(({ name }) => name).filter((name) => name === "judge output")).to.have.length(32);
    expect(ended.at(-1)?.name).to.equal("record outcome");
  });

  it("names at most eight rules, each once, and none that is no rule's name", () => {
    const { ended, begin } = rig();
    const request = begin("mcp");
    const rules = [
      "a.a",
      "a.a",
      "text of an argument",
      "x".repeat(200),
      "<script>",
      ...Array.from("bcdefghijk", (l) => `r.${l}`),
    ];
    request.setAttributes({ evaluation: evaluationOf(rules) });
    request.end();
    expect(ended[0]?.attributes["gateway.rule"]).to.deep.equal(["a.a", ..."bcdefgh".split("").map((l) => `r.${l}`)]);
  });

  it("forgets why one provider failed once another is asked", () => {
    const { ended, begin } = rig();
    const request = begin("model");
    request.begin("evaluate").end();
    request.setAttributes({ error: "PROVIDER_UNAVAILABLE" });
    request.begin("evaluate").end();
    request.setAttributes({ passed: "answered" });
    request.end();
    expect(ended.at(-1)?.status.code).to.equal(0);
    expect(ended.at(-1)?.attributes).to.not.have.property("error.type");
  });

  it("counts what a model was asked, sampled or not, with the conventions' words", () => {
    for (const percent of [0, 100]) {
      const { ended, asked, begin } = rig(percent);
      const request = begin("model");
      request.setAttributes({
        action: makeAction({ protocol: "model", tool: "messages", target: "claude/org/model-1" }),
      });
      const dispatched = request.begin("dispatch");
      dispatched.setAttributes({ usage: { inputTokens: 3, outputTokens: 5 }, error: "PROVIDER_TIMEOUT" });
      dispatched.end();
      dispatched.end();
      request.end();
      expect(ended).to.have.length(percent === 0 ? 0 : 2);
      expect(asked).to.have.length(1);
      expect(asked[0]?.attributes).to.include({
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": "anthropic",
        "gen_ai.request.model": "org/model-1",
        "error.type": "PROVIDER_TIMEOUT",
      });
      expect(asked[0]?.usage).to.deep.equal({ inputTokens: 3, outputTokens: 5 });
    }
  });

  it("samples about as many as it is told to", () => {
    const { ended, begin } = rig(25);
    for (let at = 0; at < 2_000; at++) begin("mcp").end();
    expect(ended.length).to.be.within(380, 620);
  });
});
