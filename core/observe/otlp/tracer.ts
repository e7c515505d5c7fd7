import {
  type Span as ApiSpan,
  type Tracer as ApiTracer,
  type Attributes,
  ROOT_CONTEXT,
  type SpanContext,
  SpanKind,
  SpanStatusCode,
  type Tracer as TracerApi,
  trace,
} from "@opentelemetry/api";
import type { Resource } from "@opentelemetry/resources";
import {
  ParentBasedSampler,
  type Sampler,
  SamplingDecision,
  type SpanProcessor,
  TracerProvider,
} from "@opentelemetry/sdk-trace";
import type { ActionEnvelope } from "../../action/envelope.ts";
import { type ErrorCode, GatewayError } from "../../action/error.ts";
import type { Evaluation } from "../../action/evaluation.ts";
import type { Random } from "../../action/id.ts";
import { toolNamePattern } from "../../action/json-rpc.ts";
import type { TokenUsage } from "../../action/model-api.ts";
import {
  noSpan,
  type Span,
  type SpanFacts,
  type SpanStep,
  type TraceContext,
  type TracedRequest,
  type Tracer,
} from "../../action/trace.ts";

interface TracerOptions extends Omit<SpanPorts, "tracer"> {
  readonly resource: Resource;
  readonly processor: SpanProcessor;
  readonly samplePercent: number;
  readonly random: Random;
  readonly scope: { readonly name: string; readonly version: string };
}

/**
 * Makes the spans of requests below the trace context of the client. Sampling is decided here, never by the client.
 */
export class RoadTracer implements Tracer {
  readonly #ports: SpanPorts;
  readonly #tracer: ApiTracer;

  constructor({ resource, processor, samplePercent, random, scope, ...ports }: TracerOptions) {
    const provider = new TracerProvider({
      resource,
      spanProcessors: [processor],
      sampler: sampleByChance(samplePercent, random),
      spanLimits: { attributeCountLimit: 32, attributeValueLengthLimit: 256 },
    });
    this.#tracer = provider.getTracer(scope.name, scope.version);
    this.#ports = { ...ports, tracer: this.#tracer };
  }

  begin(request: TracedRequest): Span {
    const { parent } = request;
    const method = request.protocol === "mcp" ? request.method : "chat";
    const attributes = request.protocol === "mcp" ? { "mcp.method.name": method } : { "gen_ai.operation.name": method };
    const context = parent === undefined ? ROOT_CONTEXT : trace.setSpanContext(ROOT_CONTEXT, remote(parent));
    const span = this.#tracer.startSpan(method, { kind: SpanKind.SERVER, attributes }, context);
    const call = { method, description: undefined, judged: 0 };
    return new RoadSpan(this.#ports, call, span, "request");
  }
}

function remote({ traceId, spanId, sampled }: TraceContext): SpanContext {
  return { traceId, spanId, traceFlags: sampled ? 1 : 0, isRemote: true };
}

/**
 * Samples at random, independent of the client's sampled flag and trace id: a client could otherwise have everything it
 * does traced, or nothing.
 */
function sampleByChance(percent: number, random: Random): Sampler {
  const chance: Sampler = {
    shouldSample: () => {
      const [high = 0, low = 0] = random(2);
      const drawn = ((high * 256 + low) / 65_536) * 100;
      return { decision: drawn < percent ? SamplingDecision.RECORD_AND_SAMPLED : SamplingDecision.NOT_RECORD };
    },
    toString: () => `chance of ${percent} %`,
  };
  return new ParentBasedSampler({ root: chance, remoteParentSampled: chance, remoteParentNotSampled: chance });
}

/** The result of one model request. */
export interface ModelAsked {
  readonly attributes: Attributes;
  readonly seconds: number;
  readonly usage: TokenUsage | undefined;
}

interface SpanPorts {
  readonly tracer: TracerApi;
  readonly providers: ProviderTypes;
  /** Called for each model request, sampled or not. */
  readonly onModelAsked: (asked: ModelAsked) => void;
}

/** State shared by the spans of one request. */
interface TracedCall {
  readonly method: string;
  /** Name and attributes of the latest action. */
  description: Description | undefined;
  /** Number of judged pieces of the output. */
  judged: number;
}

/** A streamed output is evaluated piece by piece; spans of one request are limited to this many of them. */
const maxJudged = 32;

const stepNames: Readonly<Record<SpanStep, string>> = {
  evaluate: "evaluate",
  record_decision: "record decision",
  dispatch: "dispatch",
  judge_output: "judge output",
  record_outcome: "record outcome",
};

type Kind = "request" | SpanStep;

/** A span made by the SDK, with the attributes that this file permits. */
class RoadSpan implements Span {
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
    this.context = { traceId, spanId, sampled: (traceFlags & 1) === 1 };
  }

  begin(step: SpanStep): Span {
    if (step === "judge_output" && ++this.#call.judged > maxJudged) return noSpan;
    // An error before this attempt is no longer the result of the request.
    if (step === "evaluate") this.#error = undefined;
    const { name, attributes } = this.#describeStep(step);
    const kind = step === "dispatch" ? SpanKind.CLIENT : SpanKind.INTERNAL;
    const parent = trace.setSpan(ROOT_CONTEXT, this.#span);
    const span = this.#ports.tracer.startSpan(name, { kind, attributes }, parent);
    return new RoadSpan(this.#ports, this.#call, span, step);
  }

  async until<T>(work: Promise<T>): Promise<T> {
    try {
      return await work;
    } catch (cause) {
      this.setAttributes({ error: GatewayError.from(cause).code });
      throw cause;
    } finally {
      this.end();
    }
  }

  setAttributes({ action, evaluation, passed, error, usage }: SpanFacts): void {
    if (action !== undefined && this.#kind === "request")
      this.#describe(describeAction(action, this.#call.method, this.#ports.providers));
    // A request span keeps the decision about the action: an allowed output adds nothing.
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

// Every span attribute is made in this file. None contains an argument, an output, a key or a session id.

/** The vendors' names by the names of their providers in the configuration. */
export type ProviderTypes = ReadonlyMap<string, string>;

/** The span name and attributes of an action, by OpenTelemetry's conventions. */
interface Description {
  readonly name: string;
  readonly attributes: Attributes;
}

/**
 * A tool's name is one that an upstream lists, a model's one that a route names: both come from a bounded set, in
 * characters that mean nothing to a terminal or a page.
 */
function describeAction(action: ActionEnvelope, method: string, providers: ProviderTypes): Description {
  if (action.protocol === "model") return describeModel(action, providers);
  const isTool = toolNamePattern.test(action.tool);
  const tool = isTool ? { "gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": action.tool } : {};
  return {
    name: isTool ? `${method} ${action.tool}` : method,
    attributes: { ...commonOf(action), "mcp.method.name": method, ...tool },
  };
}

function describeModel(action: ActionEnvelope, providers: ProviderTypes): Description {
  const [provider = "", ...rest] = action.target.split("/");
  const model = rest.join("/");
  return {
    name: `chat ${model}`,
    attributes: { ...commonOf(action), ...modelAttributes(providers.get(provider) ?? provider, model) },
  };
}

/** Attributes of a model request, in spans and in metrics. */
function modelAttributes(provider: string, model: string): Attributes {
  return { "gen_ai.operation.name": "chat", "gen_ai.provider.name": provider, "gen_ai.request.model": model };
}

function commonOf({ id, tenant, target }: ActionEnvelope): Attributes {
  return { "gateway.action.id": id, "gateway.tenant": tenant, "gateway.target": target };
}

const rulePattern = /^[A-Za-z0-9][A-Za-z0-9._:/-]{0,127}$/;
const maxRules = 8;

/** The decision and its determining rules. Messages are left out: they may repeat arguments. */
function evaluationAttributes({ id, decision, determining }: Evaluation): Attributes {
  const rules = [...new Set(determining.map(({ rule }) => rule))].filter((rule) => rulePattern.test(rule));
  return { "gateway.evaluation.id": id, "gateway.decision": decision, "gateway.rule": rules.slice(0, maxRules) };
}

function usageAttributes({ inputTokens, outputTokens }: TokenUsage): Attributes {
  return { "gen_ai.usage.input_tokens": inputTokens, "gen_ai.usage.output_tokens": outputTokens };
}
