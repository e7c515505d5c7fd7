import type { AuthorizedAction } from "../action/authorized-action.ts";
import type { Protocol } from "../action/envelope.ts";
import type { Evaluation } from "../action/evaluation.ts";
import type { Json } from "../action/json.ts";
import type { Redaction } from "../action/policy.ts";
import type { Span, TraceContext } from "../action/trace.ts";

/**
 * Sends one permitted action to its upstream. Rejects when no answer can be vouched for. `step` is the span of the
 * dispatch; its context is what upstreams may be given.
 */
export type Dispatch<Reply> = (
  permission: AuthorizedAction,
  step: Span,
) => Promise<Answer<Reply> | AnswerStream<Reply>>;

export interface DispatchTimer {
  /** Measures the time until the promise settles, and returns its result unchanged. */
  timeDispatch<T>(protocol: Protocol, answer: Promise<T>, trace: TraceContext | undefined): Promise<T>;
}

/**
 * The answer of an upstream for policy to judge. The reply is made of what policy leaves of it and of nothing else, so that
 * redacted text is in no reply.
 */
export interface Answer<Reply> {
  readonly status: "success" | "error";
  readonly output: Json;
  /** `redactions` are those that were applied to make this output. */
  readonly makeReply: (output: Json, redactions: readonly Redaction[]) => Reply | Promise<Reply>;
}

/** An answer that comes event by event. */
export interface AnswerStream<Reply> {
  /**
   * Releases what policy has seen. Resolves with the answer once it is whole, its last events still held back, or with
   * the evaluation that stopped it. Rejects with what ended the stream early.
   */
  readonly flow: (judge: Judge) => Promise<Answer<Reply> | Stopped>;
}

/** Judges an answer, or a part of one. */
export type Judge = (output: Json) => Promise<Evaluation>;

/** A streamed answer that policy stopped. */
export interface Stopped {
  readonly stopped: Evaluation;
}
