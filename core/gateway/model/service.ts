import type { AuthorizedAction } from "../../action/authorized-action.ts";
import type { PresentedTicket } from "../../action/capability-ticket.ts";
import { GatewayError } from "../../action/error.ts";
import { isLarge, type JsonObject } from "../../action/json.ts";
import { modelTool, type TokenUsage } from "../../action/model-api.ts";
import type { Principal } from "../../action/principal.ts";
import { type Span, type Tracer, traceparentOf } from "../../action/trace.ts";
import type { FairShare } from "../../http/fair-share.ts";
import { refusalError } from "../../http/refusal.ts";
import type { FailedResponse, StreamedResponse as ModelStream } from "../../provider/exchange.ts";
import type { ProviderFleet } from "../../provider/fleet.ts";
import type { Candidate } from "../../provider/outgoing.ts";
import { readEmbeddingsUsage, readUsage } from "../../provider/wire/usage.ts";
import type { ActionFactory, Actor } from "../../road/action-factory.ts";
import type { Answer, AnswerStream, Dispatch, DispatchTimer } from "../../road/dispatch.ts";
import { type Road, runAction } from "../../road/run.ts";
import { streamAnswer } from "../../road/stream.ts";
import type { Reservation, UsageMeter } from "../../usage/meter.ts";
import { contentOf, estimateTokens, type RequestContent } from "../../usage/request-content.ts";
import type { Tokenizer } from "../../usage/tokenizer.ts";
import { CountingReader, type EventSink, failedReply, type ModelReply, wholeReply } from "./reply.ts";
import type { ModelRequest } from "./request.ts";
import { refuseToolUse, type ToolPassthrough } from "./tool-passthrough.ts";

export interface ModelServiceParts {
  readonly road: Road;
  readonly actions: ActionFactory;
  readonly fleet: ProviderFleet;
  readonly toolPassthrough: ToolPassthrough;
  /** Code units of a streamed text that are held back where policy reads outputs. */
  readonly holdback: number;
  /** Limit of held bytes of one stream. */
  readonly maxHeldBytes: number;
  /** True where tool calls are judged by their facts, and leave once the answer is whole. */
  readonly holdsCalls: boolean;
  /** Measures the time until the response of a provider begins. */
  readonly metrics: DispatchTimer;
  readonly tracer: Tracer;
  readonly fairShare: FairShare;
}

/** A model request while it is served. */
interface OpenModelRequest {
  readonly actor: Actor;
  /** Settled with the usage of each provider that serves it. */
  readonly bill: Bill;
  readonly request: ModelRequest;
  readonly requestId: string;
  /** Headers that are evaluated and sent with the body. */
  readonly continuation: JsonObject | undefined;
  readonly ticket: PresentedTicket | undefined;
  readonly sink: EventSink;
  readonly signal: AbortSignal;
  /** The span of the whole request, over all providers. */
  readonly span: Span;
}

/**
 * Serves a model request by the first provider of its route, and by the next where that one fails, the route allows it and
 * nothing was sent to the client yet. Each attempt is an action of its own: evaluated, recorded and dispatched once.
 * Rejects with the GatewayError to respond with.
 */
export async function serveModel(parts: ModelServiceParts, open: OpenModelRequest): Promise<ModelReply> {
  const { request, actor, signal } = open;
  const candidates = parts.fleet.candidates(request, actor.scope.id);
  for (const [index, candidate] of candidates.entries()) {
    const attempt = new ProviderAttempt(parts, open, candidate);
    const isLast = index === candidates.length - 1;
    try {
      const reply = await attempt.run();
      if (isLast || !attempt.mayGoElsewhere) return reply;
    } catch (cause) {
      const error = signal.aborted ? GatewayError.from(signal.reason) : GatewayError.from(cause);
      if (isLast || !attempt.mayGoElsewhere) throw error;
    }
  }
  throw new TypeError("serveModel: expected a candidate");
}

/** One request to one provider. */
class ProviderAttempt {
  readonly #parts: ModelServiceParts;
  readonly #open: OpenModelRequest;
  readonly #candidate: Candidate;
  #failed: FailedResponse | undefined;
  #usedApproval = false;
  #stream: CountingReader | undefined;

  constructor(parts: ModelServiceParts, open: OpenModelRequest, candidate: Candidate) {
    this.#parts = parts;
    this.#open = open;
    this.#candidate = candidate;
  }

  /** True where another provider may be tried. An approval is for one provider only. */
  get mayGoElsewhere(): boolean {
    const { sink, signal } = this.#open;
    return this.#failed?.mayFallBack === true && !this.#usedApproval && !sink.begun && !signal.aborted;
  }

  async run(): Promise<ModelReply> {
    const { actor, request, continuation, ticket, signal } = this.#open;
    const action = this.#parts.actions.make(actor, {
      tool: modelTool(request.api, request.purpose),
      target: this.#candidate.target,
      capability: "generate",
      arguments: request.body,
      continuation,
      ticket,
    });
    const { road, metrics } = this.#parts;
    const { span } = this.#open;
    const send = (permission: AuthorizedAction, step: Span): ReturnType<Dispatch<ModelReply>> =>
      metrics.timeDispatch("model", this.#dispatch(permission, step), step.context);
    const result = await runAction(road, action, send, { span, cancel: signal }).finally(() => this.#settleStream());
    span.setAttributes({ passed: result.kind });
    if (result.kind !== "answered") throw refusalError(result);
    return result.reply;
  }

  async #dispatch(permission: AuthorizedAction, step: Span): Promise<Answer<ModelReply> | AnswerStream<ModelReply>> {
    this.#usedApproval = permission.approvalId !== undefined;
    const { request, signal } = this.#open;
    const { api, stream, form, purpose } = request;
    const traceparent = step.context === undefined ? undefined : traceparentOf(step.context);
    const pause = (): Promise<void> => this.#parts.fairShare.pause(this.#open.actor.principal);
    const call = { candidate: this.#candidate, api, stream, purpose, signal, pause, traceparent };
    await this.#open.bill.book(this.#candidate);
    const answer = await this.#parts.fleet.call(permission, call);
    this.#charge();
    if (answer.kind === "stream") return this.#streamed(answer, step);
    if (answer.kind === "whole") {
      // It was parsed in this turn, and takes as long to judge.
      if (isLarge(answer.body)) await pause();
      const usage = purpose === "embed" ? readEmbeddingsUsage(answer.body) : readUsage(api, answer.body);
      if (usage !== undefined) step.setAttributes({ usage });
      await this.#settle(usage, answer.body);
      const isJudged = this.#parts.road.policies.readsOutput("model");
      return wholeReply(answer, { refuse: this.#refuseToolUse, form, isJudged });
    }
    this.#failed = answer;
    if (answer.outcome === "unknown") throw answer.error;
    return failedReply(answer, permission.approvalId, this.#open.requestId, form);
  }

  #charge(): void {
    this.#parts.fairShare.mainThread.resume(this.#open.actor.principal);
  }

  readonly #refuseToolUse = (answer: JsonObject): void =>
    refuseToolUse(this.#parts.toolPassthrough, this.#open.request.api, answer);

  #settle(usage: TokenUsage | undefined, answer: JsonObject): Promise<void> {
    return this.#open.bill.settle(this.#candidate, usage, answer);
  }

  /** A partial stream is counted too, whoever ended it. */
  async #settleStream(): Promise<void> {
    if (this.#stream !== undefined) await this.#settle(this.#stream.usage, this.#stream.body());
  }

  #streamed({ events, reader }: ModelStream, step: Span): AnswerStream<ModelReply> {
    const { sink, request } = this.#open;
    const { form } = request;
    const counting = new CountingReader(
      reader,
      this.#refuseToolUse,
      (usage) => step.setAttributes({ usage }),
      (event) => {
        this.#charge();
        form?.check(event);
      },
    );
    this.#stream = counting;
    const { road, holdback, maxHeldBytes, holdsCalls } = this.#parts;
    return streamAnswer({
      reader: counting,
      events,
      deliver: async (released) => {
        const bytes = form?.render(released);
        if (bytes === undefined) await sink.writeEvents(released, counting.body);
        else if (bytes.length > 0) await sink.write(bytes);
      },
      holdback: road.policies.readsOutput("model") ? holdback : 0,
      maxHeldBytes,
      holdsCalls,
      reply: { kind: "streamed" },
    });
  }
}

export interface BillParts {
  readonly meter: UsageMeter;
  readonly tokenizer: () => Promise<Tokenizer>;
}

/** The usage of one model request: reserved of its principal's limits and budgets before evaluation, settled after. */
export class Bill {
  readonly #parts: BillParts;
  readonly #content: RequestContent;
  readonly #reservation: Reservation;

  /** Throws RATE_LIMITED or BUDGET_EXHAUSTED; then nothing is reserved. */
  constructor(parts: BillParts, principal: Principal, body: JsonObject) {
    this.#parts = parts;
    this.#content = contentOf(body);
    this.#reservation = parts.meter.admit(principal, estimateTokens(this.#content));
  }

  /** Counts what is reserved as used by a provider that is about to be asked. Rejects where a budget needs that and it fails. */
  book({ provider, model }: Candidate): Promise<void> {
    return this.#parts.meter.book(this.#reservation, { provider, model });
  }

  /** Settles the usage: as the provider counted it, else counted from the request and the response as far as it came. */
  async settle({ provider, model }: Candidate, counted: TokenUsage | undefined, answer: JsonObject): Promise<void> {
    const usage = counted ?? (await this.#count(answer));
    await this.#parts.meter.settle(this.#reservation, { provider, model, usage });
  }

  /** Releases the reservation, unless it was settled. */
  release(): void {
    this.#parts.meter.release(this.#reservation);
  }

  async #count(answer: JsonObject): Promise<TokenUsage> {
    const tokenizer = await this.#parts.tokenizer();
    const output = answer.choices ?? answer.content ?? answer.output ?? [];
    const { texts } = contentOf({ messages: Array.isArray(output) ? output : [] });
    return { inputTokens: tokenizer.countRequest(this.#content), outputTokens: tokenizer.countText(texts.join("\n")) };
  }
}
