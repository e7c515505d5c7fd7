import type { ActionEnvelope } from "./envelope.ts";
import type { ErrorCode } from "./error.ts";
import type { Evaluation } from "./evaluation.ts";
import type { ModelApi } from "./model-api.ts";
import type { TokenUsage } from "./token-usage.ts";
import type { TraceContext } from "./trace-context.ts";

/** The stretches of the road. */
export type SpanStep = "evaluate" | "record_decision" | "dispatch" | "judge_output" | "record_outcome";

/** What a request is, as far as that comes from a closed set. */
export type TracedRequest =
  | { readonly protocol: "mcp"; readonly method: string }
  | { readonly protocol: "model"; readonly api: ModelApi };

/** How a request ended: `refused` before it was dispatched, `withheld` after. */
export type Passed = "answered" | "refused" | "withheld";

/**
 * What a span may be told. Whoever makes spans takes of it what it has on its own list, which has nothing of arguments,
 * answers and keys.
 */
export interface SpanFacts {
  readonly action?: ActionEnvelope;
  readonly evaluation?: Evaluation;
  readonly passed?: Passed;
  /** Why it failed: `tool_error` where the upstream said so in its answer. */
  readonly error?: ErrorCode | "tool_error";
  readonly usage?: TokenUsage;
}

/** A stretch of time in which a request is served, and the stretches inside it. Nothing here throws, or waits. */
export interface Span {
  /** What is told to whoever is asked meanwhile; undefined where nothing is traced. */
  readonly context: TraceContext | undefined;
  /** Begins a step below this one. */
  begin(step: SpanStep): Span;
  /** What is told again replaces what was told. */
  tell(facts: SpanFacts): void;
  end(): void;
}

/** Makes the spans of requests, `parent` being what their callers say of their own. */
export interface Tracer {
  begin(request: TracedRequest, parent: TraceContext | undefined): Span;
}

/** The span of a request that is not traced. */
export const noSpan: Span = {
  context: undefined,
  begin: () => noSpan,
  tell: () => undefined,
  end: () => undefined,
};

/** Traces nothing. */
export const noTracer: Tracer = { begin: () => noSpan };
