import type { AuthorizedAction } from "../../action/authorized-action.ts";
import type { PresentedTicket } from "../../action/capability-ticket.ts";
import type { JsonObject } from "../../action/json.ts";
import { modelTool } from "../../action/model-api.ts";
import { type Span, type TraceContext, traceparentOf } from "../../action/trace.ts";
import { refusalError } from "../../http/refusal.ts";
import type { Candidate } from "../../provider/outgoing.ts";
import type { Actor } from "../../road/action-factory.ts";
import type { Answer } from "../../road/dispatch.ts";
import { runAction } from "../../road/run.ts";
import { failedReply, type WholeReply, wholeReply } from "./reply.ts";
import type { ModelServiceParts } from "./service.ts";

/** A request of the messages API whose tokens a provider is to count. */
interface OpenCount {
  readonly actor: Actor;
  readonly candidate: Candidate;
  readonly body: JsonObject;
  /** Headers that are evaluated and sent with the body. */
  readonly continuation: JsonObject;
  readonly ticket: PresentedTicket | undefined;
  readonly requestId: string;
  readonly signal: AbortSignal;
  readonly parent: TraceContext | undefined;
}

/** Statuses of providers that speak the API but have no such path, or not this model. */
const notCounted: ReadonlySet<number> = new Set([404, 405]);

/**
 * Has a provider count the tokens of a request. The provider gets the whole request, so this is an action of its own, with
 * the capability of the request itself: evaluated, recorded and dispatched once. Resolves with undefined where the provider
 * does not count. Rejects with the GatewayError to respond with.
 */
export function countByProvider(parts: ModelServiceParts, open: OpenCount): Promise<WholeReply | undefined> {
  const span = parts.tracer.begin({ protocol: "model", api: "messages", parent: open.parent });
  return span.until(runCount(parts, open, span));
}

async function runCount(parts: ModelServiceParts, open: OpenCount, span: Span): Promise<WholeReply | undefined> {
  const { actor, candidate, body, continuation, ticket } = open;
  const action = parts.actions.make(actor, {
    tool: modelTool("messages", "count"),
    target: candidate.target,
    capability: "generate",
    arguments: body,
    continuation,
    ticket,
  });
  const attempt = new CountAttempt(parts, open);
  const send = (permission: AuthorizedAction, step: Span): Promise<Answer<WholeReply>> =>
    parts.metrics.timeDispatch("model", attempt.dispatch(permission, step), step.context);
  const result = await runAction(parts.road, action, send, { span, cancel: open.signal });
  span.setAttributes({ passed: result.kind });
  if (result.kind !== "answered") throw refusalError(result);
  return attempt.isCounted ? result.reply : undefined;
}

/** One request to the provider that counts. */
class CountAttempt {
  /** False once the provider answered that it does not count. */
  isCounted = true;
  readonly #parts: ModelServiceParts;
  readonly #open: OpenCount;

  constructor(parts: ModelServiceParts, open: OpenCount) {
    this.#parts = parts;
    this.#open = open;
  }

  async dispatch(permission: AuthorizedAction, step: Span): Promise<Answer<WholeReply>> {
    const { candidate, signal, actor, requestId } = this.#open;
    const traceparent = step.context === undefined ? undefined : traceparentOf(step.context);
    const pause = (): Promise<void> => this.#parts.fairShare.pause(actor.principal);
    const call = { candidate, api: "messages", purpose: "count", stream: false, signal, pause, traceparent } as const;
    const answer = await this.#parts.fleet.call(permission, call);
    this.#parts.fairShare.mainThread.resume(actor.principal);
    if (answer.kind === "stream") throw new TypeError("countByProvider: expected no stream");
    if (answer.kind === "whole")
      return wholeReply(answer, { refuse: () => undefined, form: undefined, isJudged: false });
    if (answer.outcome === "unknown") throw answer.error;
    this.isCounted = answer.body === null || !notCounted.has(answer.status);
    return failedReply(answer, permission.approvalId, requestId);
  }
}
