import type { Context } from "koa";
import type { PresentedTicket } from "../../action/capability-ticket.ts";
import { GatewayError } from "../../action/error.ts";
import { isJsonObject, isLarge, type Json, type JsonObject } from "../../action/json.ts";
import type { ModelApi } from "../../action/model-api.ts";
import { type Principal, sessionScope } from "../../action/principal.ts";
import { readTraceContext, type TraceContext } from "../../action/trace.ts";
import { agentIdentity } from "../../http/access.ts";
import type { ConcurrencyLimit } from "../../http/rate.ts";
import { headerText, readGatewayBody } from "../../http/request.ts";
import { sessionLabel, singleHeader } from "../../identity/key-ring.ts";
import { bindTask, type TaskBinding } from "../../manifest/task-binding.ts";
import type { BodyLimits } from "../../operation/operation.ts";
import type { Candidate } from "../../provider/outgoing.ts";
import { providerTools, readGeminiRequest } from "../../provider/wire/gemini/request.ts";
import type { Actor } from "../../road/action-factory.ts";
import type { InFlight } from "../../road/in-flight.ts";
import { presentTicket, type TicketReader, ticketHeader } from "../../ticket/ticket-verifier.ts";
import { contentOf } from "../../usage/request-content.ts";
import { countByProvider } from "./count.ts";
import { listedForm, modelErrorEvent } from "./error.ts";
import { geminiModel, inGeminiNames, readGeminiCall, withoutModel } from "./gemini.ts";
import { GeminiReply } from "./gemini-reply.ts";
import { EventSink, type WholeReply } from "./reply.ts";
import { type ModelRequest, readEmbeddingsRequest, readModelRequest } from "./request.ts";
import { Bill, type BillParts, type ModelServiceParts, serveModel } from "./service.ts";
import { refuseTools } from "./tool-passthrough.ts";

interface ModelEndpointParts extends ModelServiceParts, BillParts {
  readonly body: BodyLimits;
  readonly inFlight: InFlight;
  readonly tickets: TicketReader;
  readonly tasks: TaskBinding;
  /** By principal. A request refused here has no body read, and is not recorded. */
  readonly concurrency: ConcurrencyLimit;
  /** Called with an error that was sent to a client within its stream. */
  readonly onFault: (requestId: string, error: GatewayError) => void;
  /** Called once with each hint that is dropped from requests of the Gemini API. */
  readonly onHintDropped: (hint: string) => void;
}

/** A request with what its headers say of it. */
interface OpenRequest {
  readonly actor: Actor;
  readonly ticket: PresentedTicket | undefined;
  readonly parent: TraceContext | undefined;
  readonly abort: AbortController;
}

/** Headers of a request that change how a provider treats its body. */
type Continuation = JsonObject | undefined;

/** The model APIs: chat completions, messages, responses and Gemini, each streamed or whole; embeddings. */
export class ModelEndpoint {
  readonly #parts: ModelEndpointParts;
  readonly #droppedHints = new Set<string>();

  constructor(parts: ModelEndpointParts) {
    this.#parts = parts;
  }

  /** POST `/v1/chat/completions`. */
  chat(ctx: Context, principal: Principal, requestId: string): Promise<void> {
    return this.#receive("chat", ctx, principal, undefined, requestId);
  }

  /** POST `/v1/responses`. */
  responses(ctx: Context, principal: Principal, requestId: string): Promise<void> {
    return this.#receive("responses", ctx, principal, undefined, requestId);
  }

  /** POST `/v1/messages`. */
  messages(ctx: Context, principal: Principal, requestId: string): Promise<void> {
    return this.#receive("messages", ctx, principal, messagesHeaders, requestId);
  }

  /**
   * POST `/v1/messages/count_tokens`: the tokens that a request would take, counted by the provider that would serve it, as
   * an action of its own. Where that one does not count, they are counted here: nothing leaves the gateway, and nothing is
   * judged.
   */
  countTokens(ctx: Context, principal: Principal, requestId: string): Promise<void> {
    return this.#parts.concurrency.run(principal.id, async () => {
      const continuation = messagesHeaders(ctx);
      const request = readModelRequest("messages", await this.#readBody(ctx, principal));
      const scope = sessionScope("http", principal.tenant, principal.id, sessionLabel(ctx.req.rawHeaders));
      const candidate = this.#parts.fleet.counter(request.model, scope.id);
      if (candidate !== undefined) {
        refuseTools(this.#parts.toolPassthrough, "messages", request.body);
        if (await this.#countBy(candidate, ctx, principal, request, continuation, requestId)) return;
      }
      const tokenizer = await this.#parts.tokenizer();
      ctx.body = { input_tokens: tokenizer.countRequest(contentOf(request.body)) };
    });
  }

  /**
   * POST `/v1beta/models/{model}:{method}`, and the same below `/v1`. A request of the Gemini API is judged, recorded and
   * served as the chat request that it is translated to.
   */
  gemini(ctx: Context, principal: Principal, requestId: string): Promise<void> {
    return this.#parts.concurrency.run(principal.id, async () => {
      const { model, method, framing } = readGeminiCall(ctx);
      const body = withoutModel(await this.#readBody(ctx, principal), model);
      if (method === "countTokens") return this.#countGemini(ctx, model, body);
      refuseTools(this.#parts.toolPassthrough, "chat", { tools: providerTools(body) });
      const { chat, showsThoughts, droppedHints } = readGeminiRequest(body, model, method === "streamGenerateContent");
      for (const hint of droppedHints) this.#reportHint(hint);
      const form = new GeminiReply(framing, showsThoughts);
      const request = { ...readModelRequest("chat", chat), form };
      await this.#serve(ctx, principal, request, undefined, requestId).catch((cause) => {
        throw inGeminiNames(cause);
      });
    });
  }

  #reportHint(hint: string): void {
    if (this.#droppedHints.has(hint)) return;
    this.#droppedHints.add(hint);
    this.#parts.onHintDropped(hint);
  }

  /** Counts here. The request is given itself, or as `generateContentRequest`. */
  async #countGemini(ctx: Context, model: string, body: Json): Promise<void> {
    const given = isJsonObject(body) ? body.generateContentRequest : undefined;
    const { chat } = readGeminiRequest(given === undefined ? body : withoutModel(given, model), model, false);
    this.#parts.fleet.checkModel(model);
    const tokenizer = await this.#parts.tokenizer();
    ctx.body = { totalTokens: tokenizer.countRequest(contentOf(chat)) };
  }

  /** GET `/v1beta/models`. */
  geminiModels(ctx: Context): void {
    ctx.body = { models: this.#parts.fleet.models.map(geminiModel) };
  }

  /** GET `/v1beta/models/{model}`. */
  geminiModel(ctx: Context): void {
    const { model = "" } = ctx.params as { readonly model?: string };
    this.#parts.fleet.checkModel(model);
    ctx.body = geminiModel(model);
  }

  /** POST `/v1/embeddings`. */
  embeddings(ctx: Context, principal: Principal, requestId: string): Promise<void> {
    return this.#parts.concurrency.run(principal.id, async () => {
      const request = readEmbeddingsRequest(await this.#readBody(ctx, principal));
      await this.#serve(ctx, principal, request, undefined, requestId);
    });
  }

  /** GET `/v1/models`: in the shape of the API whose header is sent. */
  models(ctx: Context): void {
    const api = listedForm(ctx);
    if (api === "gemini") this.geminiModels(ctx);
    else ctx.body = modelList(api, this.#parts.fleet.models);
  }

  /** GET `/v1/models/{id}`: one of them, in the same shape. Throws MODEL_UNKNOWN. */
  model(ctx: Context): void {
    const { model = "" } = ctx.params as { readonly model?: string };
    const api = listedForm(ctx);
    this.#parts.fleet.checkModel(model);
    ctx.body = api === "gemini" ? geminiModel(model) : modelEntry(api, model);
  }

  #receive(
    api: ModelApi,
    ctx: Context,
    principal: Principal,
    readHeaders: ((ctx: Context) => JsonObject) | undefined,
    requestId: string,
  ): Promise<void> {
    return this.#parts.concurrency.run(principal.id, async () => {
      const continuation = readHeaders?.(ctx);
      const request = readModelRequest(api, await this.#readBody(ctx, principal));
      refuseTools(this.#parts.toolPassthrough, api, request.body);
      await this.#serve(ctx, principal, request, continuation, requestId);
    });
  }

  #readBody(ctx: Context, principal: Principal): Promise<Json> {
    return readGatewayBody(ctx.req, this.#parts.body, this.#parts.fairShare, principal);
  }

  async #serve(
    ctx: Context,
    principal: Principal,
    request: ModelRequest,
    continuation: Continuation,
    requestId: string,
  ): Promise<void> {
    const { actor, ticket, parent, abort } = await this.#open(ctx, principal, requestId);
    const { form } = request;
    const sink = new EventSink(ctx, abort.signal, form?.streamType);
    const { inFlight } = this.#parts;
    const bill = this.#bill(ctx, principal, request);
    inFlight.begin(principal, actor.scope.id, abort);
    try {
      // All of it was read for its bill; to freeze and judge it takes as long.
      if (isLarge(request.body)) await this.#parts.fairShare.pause(principal);
      const open = { actor, bill, request, requestId, continuation, ticket, sink, signal: abort.signal };
      const span = this.#parts.tracer.begin({ protocol: "model", api: request.api, parent });
      const reply = await span.until(serveModel(this.#parts, { ...open, span }));
      if (reply.kind === "streamed") return sink.end(...(form?.end() ?? []));
      sendWhole(ctx, reply);
    } catch (cause) {
      const error = GatewayError.from(cause);
      if (!sink.begun) throw error;
      this.#parts.onFault(requestId, error);
      sink.end(...(form?.errorEnd(error, requestId) ?? [modelErrorEvent(request.api, error, requestId, sink)]));
    } finally {
      bill.release();
      inFlight.finish(actor.scope.id, abort);
    }
  }

  /** Responds with the provider's count. Resolves with false where the provider does not count. */
  async #countBy(
    candidate: Candidate,
    ctx: Context,
    principal: Principal,
    { body }: ModelRequest,
    continuation: JsonObject,
    requestId: string,
  ): Promise<boolean> {
    const { abort, ...open } = await this.#open(ctx, principal, requestId);
    const { inFlight } = this.#parts;
    const { scope } = open.actor;
    inFlight.begin(principal, scope.id, abort);
    try {
      const count = { ...open, candidate, body, continuation, requestId, signal: abort.signal };
      const reply = await countByProvider(this.#parts, count);
      if (reply !== undefined) sendWhole(ctx, reply);
      return reply !== undefined;
    } finally {
      inFlight.finish(scope.id, abort);
    }
  }

  /** Begins a request: who asks, for which task, with which ticket; `abort` fires when the client disconnects. */
  async #open(ctx: Context, principal: Principal, requestId: string): Promise<OpenRequest> {
    const { headers, rawHeaders } = ctx.req;
    const scope = sessionScope("http", principal.tenant, principal.id, sessionLabel(rawHeaders));
    await bindTask(this.#parts.tasks, ctx.req, principal, scope);
    const ticket = presentTicket(this.#parts.tickets, principal, singleHeader(rawHeaders, ticketHeader), undefined);
    const abort = new AbortController();
    ctx.set("request-id", requestId);
    ctx.res.once("close", () => {
      if (!ctx.res.writableFinished) abort.abort(new GatewayError("CANCELLED"));
    });
    const parent = readTraceContext(headerText(headers, "traceparent"));
    return { actor: { principal, scope, client: agentIdentity(ctx.req) }, ticket, parent, abort };
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

function sendWhole(ctx: Context, reply: WholeReply): void {
  ctx.status = reply.status;
  ctx.type = "application/json";
  if (reply.headers !== undefined) ctx.set(reply.headers);
  ctx.body = reply.bytes;
}

/** The version and the trial features asked for: they are judged, and reach the provider, with the request. */
function messagesHeaders(ctx: Context): JsonObject {
  const version = messagesVersion(ctx.req.rawHeaders);
  const beta = singleHeader(ctx.req.rawHeaders, "anthropic-beta");
  return { "anthropic-version": version, ...(beta === undefined ? {} : { "anthropic-beta": beta }) };
}

const owner = "agent-governance-gateway";

function modelEntry(api: ModelApi, id: string): JsonObject {
  if (api === "chat") return { id, object: "model", created: 0, owned_by: owner };
  return { type: "model", id, display_name: id, created_at: "1970-01-01T00:00:00Z" };
}

/** The models that clients may ask for, as the API lists them: all on one page. When they were made is not known. */
function modelList(api: ModelApi, models: readonly string[]): JsonObject {
  const data = models.map((id) => modelEntry(api, id));
  if (api === "chat") return { object: "list", data };
  return {
    data,
    has_more: false,
    first_id: models[0] ?? null,
    last_id: models.at(-1) ?? null,
  };
}

/** The versions of the messages API that are served; the first is that of a request which names none. */
const supportedVersions = ["2023-06-01", "2026-10-21"] as const;
type MessagesVersion = (typeof supportedVersions)[number];

/**
 * The version of the messages API a request asks for: `provider-version` and `anthropic-version` are two names of one
 * header. Throws DUPLICATE_HEADER, VERSION_CONFLICT where they differ, and VERSION_UNSUPPORTED.
 */
function messagesVersion(rawHeaders: readonly string[]): MessagesVersion {
  const ours = singleHeader(rawHeaders, "provider-version");
  const theirs = singleHeader(rawHeaders, "anthropic-version");
  if (ours !== undefined && theirs !== undefined && ours !== theirs) {
    throw new GatewayError("VERSION_CONFLICT", "expected `provider-version` and `anthropic-version` to be equal");
  }
  const asked = ours ?? theirs ?? supportedVersions[0];
  const version = supportedVersions.find((each) => each === asked);
  if (version !== undefined) return version;
  throw new GatewayError(
    "VERSION_UNSUPPORTED",
    `expected ${supportedVersions.map((each) => `\`${each}\``).join(" or ")}, got \`${asked.slice(0, 32)}\``,
  );
}
