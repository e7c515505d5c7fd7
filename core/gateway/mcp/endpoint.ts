import type { Context } from "koa";
import { Cancellation } from "../../action/cancellation.ts";
import { GatewayError } from "../../action/error.ts";
import { type JsonRpcMessage, type JsonRpcRequest, type JsonRpcResponse, readJsonRpc } from "../../action/json-rpc.ts";
import { type Principal, type SessionScope, sessionScope } from "../../action/principal.ts";
import { addressOf, type Challenge, clientIdentity, unnamedClient } from "../../http/access.ts";
import type { FairShare } from "../../http/fair-share.ts";
import { headerText, readGatewayBody } from "../../http/request.ts";
import { sessionLabel, singleHeader } from "../../identity/key-ring.ts";
import { bindTask, type TaskBinding } from "../../manifest/task-binding.ts";
import type { BodyLimits } from "../../operation/operation.ts";
import type { InFlight } from "../../road/in-flight.ts";
import { ticketHeader } from "../../ticket/ticket-verifier.ts";
import { mcpErrorBody, mcpStatus } from "./answer.ts";
import { type Caller, receiveAnswer, receiveNotification } from "./caller.ts";
import { checkRevisionHeader, classifyEra, type Era } from "./era.ts";
import { type HandshakeParts, openSession, type SessionHome } from "./handshake.ts";
import { Reply } from "./reply.ts";
import { type McpServiceParts, serveRequest } from "./service.ts";
import { McpSession } from "./session.ts";
import type { SessionTable } from "./session-table.ts";

export interface McpEndpointParts extends HandshakeParts, McpServiceParts {
  readonly body: BodyLimits;
  readonly sessions: SessionTable;
  readonly inFlight: InFlight;
  readonly tasks: TaskBinding;
  readonly fairShare: FairShare;
  readonly challenge: Challenge;
}

/** `/mcp`: Streamable HTTP for every revision, and direct JSON-RPC without a handshake. */
export class McpEndpoint {
  readonly #parts: McpEndpointParts;
  readonly #subscriptions = new Map<Cancellation, Principal>();
  #stopping = false;

  constructor(parts: McpEndpointParts) {
    this.#parts = parts;
  }

  /** POST: one JSON-RPC message. */
  async post(ctx: Context, principal: Principal, requestId: string): Promise<void> {
    const scope = sessionScope("http", principal.tenant, principal.id, sessionLabel(ctx.req.rawHeaders));
    const { body, fairShare } = this.#parts;
    const incoming = readJsonRpc(await readGatewayBody(ctx.req, body, fairShare, principal));
    if (incoming.kind !== "request") return this.#receive(ctx, principal, incoming);
    const request = incoming.message;
    ctx.respond = false;
    const { stream, streamFirst } = acceptedForms(ctx);
    const reply = new Reply(ctx.res, stream);
    try {
      const era = classifyEra(request, ctx.req.headers);
      await bindTask(this.#parts.tasks, ctx.req, principal, scope, request.params?._meta);
      const response = await this.#answer(ctx, principal, scope, request, era, reply);
      // The stateless revision streams only where messages precede the result.
      if (streamFirst && era.era === "legacy") reply.startStream();
      reply.finish("result" in response ? 200 : errorStatus(era, response.error.code), response);
    } catch (cause) {
      const error = GatewayError.from(cause);
      this.#parts.onFault(requestId, error);
      const status = mcpStatus(error, ctx.req.headers["mcp-session-id"] !== undefined);
      if (status === 401) reply.setHeader("www-authenticate", this.#parts.challenge(error));
      reply.finish(status, mcpErrorBody(error, request.id, requestId));
    }
  }

  /** GET: the standing stream of a session, for messages outside of any request. */
  stream(ctx: Context, principal: Principal): void {
    checkRevisionHeader(ctx.req.headers);
    if (!acceptedForms(ctx).stream) throw new GatewayError("INVALID_HEADER", "expected `accept: text/event-stream`");
    if (this.#stopping) throw new GatewayError("STOPPING");
    const session = this.#sessionOf(ctx, principal);
    if (session === null)
      throw new GatewayError("METHOD_NOT_ALLOWED", "a stream needs a session: send `initialize` first");
    if (ctx.method === "HEAD") {
      ctx.set("content-type", "text/event-stream");
      ctx.status = 200;
      return;
    }
    ctx.respond = false;
    session.attach(new Reply(ctx.res, true));
  }

  /** DELETE: ends a session. */
  async end(ctx: Context, principal: Principal): Promise<void> {
    const session = this.#sessionOf(ctx, principal);
    if (session === null) throw new GatewayError("SESSION_UNKNOWN", "expected `mcp-session-id`");
    await this.#parts.sessions.end(session);
    ctx.status = 204;
  }

  /** Ends subscriptions, standing streams and held calls, and lets none begin. Other requests continue. */
  endStreams(): void {
    this.#stopping = true;
    for (const abort of this.#subscriptions.keys()) abort.abort(new GatewayError("STOPPING"));
    this.#parts.hold.stop();
    this.#parts.sessions.endStreams();
  }

  /** Ends the sessions, subscriptions and held calls of principals that are no longer `known`. */
  async endRevoked(known: (principal: Principal) => boolean): Promise<void> {
    for (const [abort, principal] of this.#subscriptions) {
      if (!known(principal)) abort.abort(new GatewayError("KEY_UNKNOWN"));
    }
    this.#parts.hold.endRevoked(known);
    await this.#parts.sessions.endRevoked(known);
  }

  /** Receives a message that gets no response of its own. */
  async #receive(
    ctx: Context,
    principal: Principal,
    incoming: Exclude<JsonRpcMessage, { readonly kind: "request" }>,
  ): Promise<void> {
    checkRevisionHeader(ctx.req.headers);
    const session = this.#sessionOf(ctx, principal);
    if (incoming.kind === "notification") await receiveNotification(session, incoming.message);
    else receiveAnswer(session, incoming.message);
    ctx.respond = false;
    new Reply(ctx.res, false).end(202);
  }

  async #answer(
    ctx: Context,
    principal: Principal,
    scope: SessionScope,
    request: JsonRpcRequest,
    era: Era,
    reply: Reply,
  ): Promise<JsonRpcResponse> {
    if (era.era === "legacy" && request.method === "initialize") {
      return this.#initialize(ctx, principal, scope, request, reply);
    }
    const { headers, rawHeaders } = ctx.req;
    const session = era.era === "legacy" ? this.#sessionOf(ctx, principal) : null;
    const address = addressOf(ctx.req);
    const named = era.era === "modern" ? clientIdentity(era.clientInfo, address) : { ...unnamedClient, address };
    const caller: Caller = {
      principal,
      scope,
      client: session?.owner.client ?? named,
      era,
      group: session?.group ?? this.#parts.fleet.shared[era.era],
      session,
      ticket: singleHeader(rawHeaders, ticketHeader),
      traceparent: headerText(headers, "traceparent"),
    };
    const cancellation = new Cancellation();
    session?.begin(request.id, reply, cancellation);
    this.#parts.inFlight.begin(principal, scope.id, cancellation);
    if (era.era === "modern") reply.onGone(() => cancellation.abort(new GatewayError("CANCELLED")));
    try {
      if (request.method === "subscriptions/listen") this.#watch(cancellation, principal);
      return await serveRequest(this.#parts, caller, request, reply, cancellation);
    } finally {
      this.#subscriptions.delete(cancellation);
      this.#parts.inFlight.finish(scope.id, cancellation);
      session?.finish(request.id);
    }
  }

  #watch(subscription: Cancellation, principal: Principal): void {
    if (this.#stopping) throw new GatewayError("STOPPING");
    this.#subscriptions.set(subscription, principal);
  }

  /** Opens a session, whose id the client sends with its further requests. */
  async #initialize(
    ctx: Context,
    principal: Principal,
    scope: SessionScope,
    request: JsonRpcRequest,
    reply: Reply,
  ): Promise<JsonRpcResponse> {
    const opener = { principal, scope, address: addressOf(ctx.req) };
    const { sessions } = this.#parts;
    const home: SessionHome = {
      add: (open) => sessions.add(principal, open),
      end: (session) => sessions.end(session),
    };
    const { session, response } = await openSession(this.#parts, home, opener, request);
    reply.setHeader("mcp-session-id", session.id);
    return response;
  }

  #sessionOf(ctx: Context, principal: Principal): McpSession | null {
    const id = headerText(ctx.req.headers, "mcp-session-id");
    return id === undefined ? null : this.#parts.sessions.find(McpSession, id, principal);
  }
}

function errorStatus(era: Era, code: number): number {
  if (era.era === "legacy") return 200;
  if (code === -32601) return 404;
  return code === -32021 ? 400 : 200;
}

/** The response formats that a client accepts: streams at all, and before JSON, by the order of `Accept`. */
function acceptedForms(ctx: Context): { readonly stream: boolean; readonly streamFirst: boolean } {
  const accept = headerText(ctx.req.headers, "accept") ?? "";
  const stream = accept.indexOf("text/event-stream");
  const json = accept.search(/application\/json|\*\/\*/);
  return { stream: stream !== -1, streamFirst: stream !== -1 && (json === -1 || stream < json) };
}
