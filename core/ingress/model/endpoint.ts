import type { Context } from "koa";
import { singleHeader } from "../../identity/header.ts";
import { sessionLabel } from "../../identity/session-label.ts";
import { GatewayError } from "../../kernel/error.ts";
import type { JsonObject } from "../../kernel/json.ts";
import type { ModelApi } from "../../kernel/model-api.ts";
import type { Principal } from "../../kernel/principal.ts";
import { httpSession } from "../../kernel/session-scope.ts";
import { readTraceContext } from "../../kernel/trace-context.ts";
import type { TaskBinding } from "../../manifest/task-binding.ts";
import { inSpan } from "../../pipeline/traced-road.ts";
import { contentOf } from "../../usage/request-content.ts";
import type { Actor } from "../action-factory.ts";
import { type BodyLimits, readJsonBody } from "../body.ts";
import { agentIdentity } from "../client.ts";
import type { ConcurrencyLimit } from "../concurrency-limit.ts";
import { headerText } from "../header.ts";
import type { InFlight } from "../in-flight.ts";
import { bindTask } from "../task-reference.ts";
import { presentTicket, type TicketReader, ticketHeader } from "../ticket.ts";
import { Bill, type BillParts } from "./bill.ts";
import { modelErrorEvent } from "./error.ts";
import { EventSink } from "./event-sink.ts";
import { modelList } from "./model-list.ts";
import { type ModelRequest, readModelRequest } from "./request.ts";
import { type ServiceParts, serveModel } from "./service.ts";
import { refuseTools } from "./tool-passthrough.ts";
import { messagesVersion } from "./version.ts";

export interface ModelEndpointParts extends ServiceParts, BillParts {
  readonly body: BodyLimits;
  readonly inFlight: InFlight;
  readonly tickets: TicketReader;
  readonly tasks: TaskBinding;
  /** By principal: whoever is refused here had no body read, and is not on record. */
  readonly concurrency: ConcurrencyLimit;
  /** A fault that was told to a client in the middle of its stream. */
  readonly onFault: (requestId: string, error: GatewayError) => void;
}

/** What a client says beside the body that changes what a provider makes of it. */
type Continuation = JsonObject | undefined;

/** The model APIs: chat completions and messages, each streamed or whole. */
export class ModelEndpoint {
  readonly #parts: ModelEndpointParts;

  constructor(parts: ModelEndpointParts) {
    this.#parts = parts;
  }

  /** POST `/v1/chat/completions`. */
  chat(ctx: Context, principal: Principal, requestId: string): Promise<void> {
    return this.#parts.concurrency.run(principal.id, async () => {
      const request = readModelRequest("chat", await readJsonBody(ctx.req, this.#parts.body));
      await this.#serve(ctx, principal, request, undefined, requestId);
    });
  }

  /** POST `/v1/messages`. */
  messages(ctx: Context, principal: Principal, requestId: string): Promise<void> {
    return this.#parts.concurrency.run(principal.id, async () => {
      const continuation = messagesHeaders(ctx);
      const request = readModelRequest("messages", await readJsonBody(ctx.req, this.#parts.body));
      if (!this.#parts.toolPassthrough) refuseTools(request.body);
      await this.#serve(ctx, principal, request, continuation, requestId);
    });
  }

  /**
   * POST `/v1/messages/count_tokens`: what a request would take, as it is counted here. Nothing leaves the gateway, so
   * nothing is judged.
   */
  countTokens(ctx: Context, principal: Principal): Promise<void> {
    return this.#parts.concurrency.run(principal.id, async () => {
      messagesHeaders(ctx);
      const { body, model } = readModelRequest("messages", await readJsonBody(ctx.req, this.#parts.body));
      this.#parts.fleet.checkModel(model);
      const tokenizer = await this.#parts.tokenizer();
      ctx.body = { input_tokens: tokenizer.countRequest(contentOf(body)) };
    });
  }

  /** GET `/v1/models`: in the shape of the API whose version header is sent. */
  models(ctx: Context): void {
    const api: ModelApi = ctx.req.headers["anthropic-version"] === undefined ? "chat" : "messages";
    ctx.body = modelList(api, this.#parts.fleet.models);
  }

  async #serve(
    ctx: Context,
    principal: Principal,
    request: ModelRequest,
    continuation: Continuation,
    requestId: string,
  ): Promise<void> {
    const scope = httpSession(principal.tenant, principal.id, sessionLabel(ctx.req.rawHeaders));
    await bindTask(this.#parts.tasks, ctx.req, principal, scope);
    const actor: Actor = { principal, scope, client: agentIdentity(ctx.req) };
    const ticket = presentTicket(this.#parts.tickets, principal, ticketHeader(ctx.req), undefined);
    const abort = new AbortController();
    const sink = new EventSink(ctx, abort.signal);
    const { inFlight } = this.#parts;
    ctx.set("request-id", requestId);
    ctx.res.once("close", () => {
      if (!ctx.res.writableFinished) abort.abort(new GatewayError("CANCELLED"));
    });
    const bill = this.#bill(ctx, principal, request);
    inFlight.begin(principal, scope.id, abort);
    const said = readTraceContext(headerText(ctx.req.headers, "traceparent"));
    const span = this.#parts.tracer.begin({ protocol: "model", api: request.api }, said);
    try {
      const open = { actor, bill, request, requestId, continuation, ticket, sink, signal: abort.signal, span };
      const reply = await inSpan(span, () => serveModel(this.#parts, open));
      if (reply.kind === "streamed") return sink.end();
      ctx.status = reply.status;
      ctx.type = "application/json";
      if (reply.headers !== undefined) ctx.set(reply.headers);
      ctx.body = reply.bytes;
    } catch (cause) {
      const error = GatewayError.from(cause);
      if (!sink.begun) throw error;
      this.#parts.onFault(requestId, error);
      sink.end(modelErrorEvent(request.api, error, requestId));
    } finally {
      bill.release();
      inFlight.finish(scope.id, abort);
    }
  }

  /** Reserves what the request may take; the client is told where it stands with its limits, let in or not. */
  #bill(ctx: Context, principal: Principal, request: ModelRequest): Bill {
    try {
      return new Bill(this.#parts, principal, request.body);
    } finally {
      ctx.set(this.#parts.meter.headers(principal));
    }
  }
}

/** The version and the trial features asked for: they are judged, and reach the provider, with the request. */
function messagesHeaders(ctx: Context): JsonObject {
  const version = messagesVersion(ctx.req.rawHeaders);
  const beta = singleHeader(ctx.req.rawHeaders, "anthropic-beta");
  return { "anthropic-version": version, ...(beta === undefined ? {} : { "anthropic-beta": beta }) };
}
