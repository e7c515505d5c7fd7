import type { ActionEnvelope } from "./envelope.ts";
import type { ErrorCode } from "./error.ts";
import type { Evaluation } from "./evaluation.ts";
import type { ModelApi, TokenUsage } from "./model-api.ts";

/** The traced steps of an action. */
export type SpanStep = "evaluate" | "record_decision" | "dispatch" | "judge_output" | "record_outcome";

/** The kind of a request, from a closed set. */
export type TracedRequest = (
  | { readonly protocol: "mcp"; readonly method: string }
  | { readonly protocol: "model"; readonly api: ModelApi }
) & {
  /** The trace context that the caller sent. */
  readonly parent: TraceContext | undefined;
};

/** The end of a request: `refused` before it was dispatched, `withheld` after. */
type Passed = "answered" | "refused" | "withheld";

/**
 * Facts from which a tracer derives span attributes. Tracers choose from a fixed list without arguments, outputs and
 * keys.
 */
export interface SpanFacts {
  readonly action?: ActionEnvelope;
  readonly evaluation?: Evaluation;
  readonly passed?: Passed;
  /** The error: `tool_error` where the upstream reported one in its result. */
  readonly error?: ErrorCode | "tool_error";
  readonly usage?: TokenUsage;
}

/** A traced operation and the steps inside it. No method throws or waits. */
export interface Span {
  /** The trace context for outgoing requests; undefined where nothing is traced. */
  readonly context: TraceContext | undefined;
  /** Begins a step below this one. */
  begin(step: SpanStep): Span;
  /** Ends the span when `work` settles, with the error it rejects with. Returns what `work` resolves with. */
  until<T>(work: Promise<T>): Promise<T>;
  /** Sets attributes of the span; a later value replaces an earlier one. */
  setAttributes(facts: SpanFacts): void;
  end(): void;
}

/** Creates the spans of requests. */
export interface Tracer {
  /** Begins the span of a request. */
  begin(request: TracedRequest): Span;
}

const ignore = (): Span => noSpan;

/** The span of a request that is not traced. */
export const noSpan: Span = {
  context: undefined,
  begin: ignore,
  until: (work) => work,
  setAttributes: ignore,
  end: ignore,
};

/** Traces nothing. */
export const noTracer: Tracer = { begin: ignore };

/** The position of a request in a distributed trace (W3C Trace Context). */
export interface TraceContext {
  /** 32 lower-case hex digits, not all of them 0. */
  readonly traceId: string;
  /** 16 lower-case hex digits: the span of the caller. */
  readonly spanId: string;
  readonly sampled: boolean;
}

const shape = /^([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?$/;
const nothing = /^0+$/;
const maxParent = 256;

/**
 * Reads a caller's trace context. A malformed `traceparent` yields undefined: a caller cannot make a request fail with it.
 * `tracestate` is never read: it is free text that nobody judges.
 */
export function readTraceContext(traceparent: unknown): TraceContext | undefined {
  if (typeof traceparent !== "string" || traceparent.length > maxParent) return undefined;
  const [, version, traceId = "", spanId = "", flags = "", more] = shape.exec(traceparent) ?? [];
  if (version === undefined || version === "ff" || (version === "00" && more !== undefined)) return undefined;
  if (nothing.test(traceId) || nothing.test(spanId)) return undefined;
  const sampled = (Number.parseInt(flags, 16) & 1) === 1;
  return { traceId, spanId, sampled };
}

/** The value of `traceparent`. */
export function traceparentOf({ traceId, spanId, sampled }: TraceContext): string {
  return `00-${traceId}-${spanId}-${sampled ? "01" : "00"}`;
}
