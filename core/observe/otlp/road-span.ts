import {
  type Span as ApiSpan,
  type Attributes,
  ROOT_CONTEXT,
  SpanKind,
  SpanStatusCode,
  type Tracer,
  trace,
} from "@opentelemetry/api";
import type { ErrorCode } from "../../kernel/error.ts";
import type { Evaluation } from "../../kernel/evaluation.ts";
import { noSpan, type Span, type SpanFacts, type SpanStep } from "../../kernel/span.ts";
import type { TokenUsage } from "../../kernel/token-usage.ts";
import type { TraceContext } from "../../kernel/trace-context.ts";
import {
  type Description,
  describeAction,
  evaluationAttributes,
  type ProviderTypes,
  usageAttributes,
} from "./attribute.ts";

/** What one question to a model came to. */
export interface ModelAsked {
  readonly attributes: Attributes;
  readonly seconds: number;
  readonly usage: TokenUsage | undefined;
}

export interface SpanPorts {
  readonly tracer: Tracer;
  readonly providers: ProviderTypes;
  /** Told of each question to a model, sampled or not. */
  readonly onModelAsked: (asked: ModelAsked) => void;
}

/** What the spans of one request have in common. */
export interface TracedCall {
  readonly method: string;
  /** `tracestate` of the client. */
  readonly state: string | undefined;
  /** Of the latest action. */
  description: Description | undefined;
  /** Steps of which there may be any number. */
  judged: number;
}

/** A streamed answer is judged piece by piece; of one request, so many are told. */
const mostJudged = 32;

const stepNames: Readonly<Record<SpanStep, string>> = {
  evaluate: "evaluate",
  record_decision: "record decision",
  dispatch: "dispatch",
  judge_output: "judge output",
  record_outcome: "record outcome",
};

type Kind = "request" | SpanStep;

/** A span of the road, made by the SDK and told what `attribute.ts` lets through. */
export class RoadSpan implements Span {
  readonly context: TraceContext;
  readonly #ports: SpanPorts;
  readonly #call: TracedCall;
  readonly #span: ApiSpan;
  readonly #kind: Kind;
  readonly #begun = performance.now();
  #error: SpanFacts["error"];
  #evaluation: Evaluation | undefined;
  #usage: TokenUsage | undefined;
  #ended = false;

  constructor(ports: SpanPorts, call: TracedCall, span: ApiSpan, kind: Kind) {
    this.#ports = ports;
    this.#call = call;
    this.#span = span;
    this.#kind = kind;
    const { traceId, spanId, traceFlags } = span.spanContext();
    const { state } = call;
    this.context = { traceId, spanId, sampled: (traceFlags & 1) === 1, ...(state === undefined ? {} : { state }) };
  }

  begin(step: SpanStep): Span {
    if (step === "judge_output" && ++this.#call.judged > mostJudged) return noSpan;
    // What went wrong before this attempt is no longer how the request ends.
    if (step === "evaluate") this.#error = undefined;
    const { name, attributes } = this.#describeStep(step);
    const kind = step === "dispatch" ? SpanKind.CLIENT : SpanKind.INTERNAL;
    const parent = trace.setSpan(ROOT_CONTEXT, this.#span);
    const span = this.#ports.tracer.startSpan(name, { kind, attributes }, parent);
    return new RoadSpan(this.#ports, this.#call, span, step);
  }

  tell({ action, evaluation, passed, error, usage }: SpanFacts): void {
    if (action !== undefined && this.#kind === "request")
      this.#describe(describeAction(action, this.#call.method, this.#ports.providers));
    // Of a request that went on, the decision about the action is told; of its answer, that policy let it go is no news.
    const isNews = this.#kind !== "request" || evaluation?.phase !== "output" || evaluation.decision !== "allow";
    if (evaluation !== undefined && isNews) {
      this.#evaluation = evaluation;
      this.#span.setAttributes(evaluationAttributes(evaluation));
    }
    if (usage !== undefined) this.#usage = usage;
    if (error !== undefined) this.#error = error;
    if (passed !== undefined) {
      this.#span.setAttribute("gateway.passage", passed);
      if (passed !== "answered") this.#error = refusalOf(this.#evaluation);
    }
  }

  end(): void {
    if (this.#ended) return;
    this.#ended = true;
    const failed: Attributes = this.#error === undefined ? {} : { "error.type": this.#error };
    if (this.#error !== undefined) this.#span.setAttributes(failed).setStatus({ code: SpanStatusCode.ERROR });
    if (this.#usage !== undefined) this.#span.setAttributes(usageAttributes(this.#usage));
    this.#span.end();
    const attributes = this.#call.description?.attributes ?? {};
    if (this.#kind !== "dispatch" || attributes["gen_ai.operation.name"] !== "chat") return;
    const seconds = (performance.now() - this.#begun) / 1000;
    this.#ports.onModelAsked({ attributes: { ...attributes, ...failed }, seconds, usage: this.#usage });
  }

  #describe(description: Description): void {
    this.#call.description = description;
    this.#span.updateName(description.name).setAttributes(description.attributes);
  }

  #describeStep(step: SpanStep): Description {
    const { description } = this.#call;
    return step === "dispatch" && description !== undefined ? description : { name: stepNames[step], attributes: {} };
  }
}

function refusalOf(evaluation: Evaluation | undefined): ErrorCode {
  return evaluation?.decision === "review" ? "REVIEW_REQUIRED" : "POLICY_BLOCKED";
}
