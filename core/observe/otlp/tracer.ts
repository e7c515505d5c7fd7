import { type Tracer as ApiTracer, ROOT_CONTEXT, type SpanContext, SpanKind, trace } from "@opentelemetry/api";
import type { Resource } from "@opentelemetry/resources";
import {
  ParentBasedSampler,
  type Sampler,
  SamplingDecision,
  type SpanProcessor,
  TracerProvider,
} from "@opentelemetry/sdk-trace";
import type { Random } from "../../kernel/port.ts";
import type { Span, TracedRequest, Tracer } from "../../kernel/span.ts";
import type { TraceContext } from "../../kernel/trace-context.ts";
import { RoadSpan, type SpanPorts } from "./road-span.ts";

export interface TracerOptions extends Omit<SpanPorts, "tracer"> {
  readonly resource: Resource;
  readonly processor: SpanProcessor;
  readonly samplePercent: number;
  readonly random: Random;
  readonly scope: { readonly name: string; readonly version: string };
}

/**
 * Makes the spans of requests. What a client says of its trace becomes the parent, so that its trace goes on here; whether
 * it is told to the collector is not for the client to say.
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

  begin(request: TracedRequest, parent: TraceContext | undefined): Span {
    const method = request.protocol === "mcp" ? request.method : "chat";
    const attributes = request.protocol === "mcp" ? { "mcp.method.name": method } : { "gen_ai.operation.name": method };
    const context = parent === undefined ? ROOT_CONTEXT : trace.setSpanContext(ROOT_CONTEXT, remote(parent));
    const span = this.#tracer.startSpan(method, { kind: SpanKind.SERVER, attributes }, context);
    const call = { method, state: parent?.state, description: undefined, judged: 0 };
    return new RoadSpan(this.#ports, call, span, "request");
  }
}

function remote({ traceId, spanId, sampled }: TraceContext): SpanContext {
  return { traceId, spanId, traceFlags: sampled ? 1 : 0, isRemote: true };
}

/**
 * By chance, and neither by the flag of a client nor by the id of its trace, which it chooses too: else it could have all
 * it does told, or nothing.
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
