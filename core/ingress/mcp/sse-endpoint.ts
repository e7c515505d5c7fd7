import type { IncomingHttpHeaders } from "node:http";
import type { Context } from "koa";
import { GatewayError } from "../../kernel/error.ts";
import { type JsonRpcMessage, type JsonRpcRequest, type JsonRpcResponse, readJsonRpc } from "../../kernel/json-rpc.ts";
import { legacyRevisions } from "../../kernel/mcp.ts";
import type { Principal } from "../../kernel/principal.ts";
import type { SessionScope } from "../../kernel/session-scope.ts";
import { readJsonBody } from "../body.ts";
import { addressOf } from "../client.ts";
import { headerText } from "../header.ts";
import { bindTask } from "../task-reference.ts";
import { ticketHeader } from "../ticket.ts";
import { receiveAnswer, receiveNotification } from "./client-message.ts";
import type { EndpointParts } from "./endpoint.ts";
import { checkRevisionHeader, classifyEra } from "./era.ts";
import { mcpErrorBody } from "./error.ts";
import { openSession } from "./handshake.ts";
import { Reply } from "./reply.ts";
import { serveRequest } from "./service.ts";
import type { McpSession } from "./session.ts";
import { type ScopeListener, SseConnection } from "./sse-connection.ts";

export interface SseParts extends EndpointParts {
  readonly onScopeEnded: ScopeListener;
}

/**
 * HTTP+SSE, the transport of the revision 2024-11-05: a stream that says where to post, and the posts. A post is
 * refused by its status, or answered 202; a request that got 202 is answered on the stream, and nowhere else.
 */
export class SseEndpoint {
  readonly #parts: SseParts;

  constructor(parts: SseParts) {
    this.#parts = parts;
  }

  /** GET `/sse`: opens a connection, which lives until its stream ends. */
  async open(ctx: Context, principal: Principal): Promise<void> {
    refuseLabel(ctx.req.headers);
    checkRevisionHeader(ctx.req.headers);
    if (ctx.method === "HEAD") {
      ctx.set("content-type", "text/event-stream");
      ctx.status = 200;
      return;
    }
    const { sessions } = this.#parts;
    const stream = new Reply(ctx.res, true);
    const onScopeEnded: ScopeListener = (scope) => this.#endScope(scope, principal);
    const connection = await sessions.add(async (id) => {
      const opened = new SseConnection(id, principal, stream, onScopeEnded);
      await bindTask(this.#parts.tasks, ctx.req, principal, opened.scope);
      return opened;
    });
    ctx.respond = false;
    stream.onClosed(() => void sessions.end(connection));
    stream.announce(`/mcp/session/${connection.id}`);
  }

  /** POST `/mcp/session/{id}`: one JSON-RPC message of the principal whose connection it is. */
  async post(ctx: Context, principal: Principal, requestId: string): Promise<void> {
    refuseLabel(ctx.req.headers);
    const connection = this.#parts.sessions.find(SseConnection, ctx.params.id as string, principal);
    const read = async (): Promise<JsonRpcMessage> => readJsonRpc(await readJsonBody(ctx.req, this.#parts.body));
    await connection.receive(read, async ({ kind, message }) => {
      if (kind === "request") {
        await bindTask(this.#parts.tasks, ctx.req, principal, connection.scope, message.params);
        return this.#accept(ctx, connection, message, requestId);
      }
      checkRevisionHeader(ctx.req.headers);
      if (kind === "notification") await receiveNotification(connection.session, message);
      else receiveAnswer(connection.session, message);
    });
    ctx.status = 202;
  }

  /** Nobody waits for the end of a scope, so nobody would hear what is wrong with it: the log does. */
  async #endScope(scope: SessionScope, principal: Principal): Promise<void> {
    try {
      await this.#parts.onScopeEnded(scope, principal);
    } catch (cause) {
      this.#parts.onFault(this.#parts.newId(), GatewayError.from(cause));
    }
  }

  #accept(ctx: Context, connection: SseConnection, request: JsonRpcRequest, requestId: string): void {
    if (classifyEra(request, ctx.req.headers).era !== "legacy") {
      throw new GatewayError("PROTOCOL_VERSION", "HTTP+SSE", { data: { supported: legacyRevisions } });
    }
    connection.accept(request);
    const traceparent = headerText(ctx.req.headers, "traceparent");
    const origin = { address: addressOf(ctx.req), ticket: ticketHeader(ctx.req), traceparent };
    void this.#serve(connection, request, origin, requestId);
  }

  /** Never rejects. What the client cancelled is not answered, as the protocol asks. */
  async #serve(connection: SseConnection, request: JsonRpcRequest, origin: Origin, requestId: string): Promise<void> {
    const abort = new AbortController();
    let answer: JsonRpcResponse;
    try {
      answer = await this.#answer(connection, request, origin, abort);
    } catch (cause) {
      const error = GatewayError.from(cause);
      this.#parts.onFault(requestId, error);
      answer = mcpErrorBody(error, request.id, requestId);
    }
    connection.finish(request.id, isCancelled(abort.signal) ? null : answer);
  }

  async #answer(
    connection: SseConnection,
    request: JsonRpcRequest,
    { address, ...beside }: Origin,
    abort: AbortController,
  ): Promise<JsonRpcResponse> {
    const { principal, scope, session } = connection;
    if (request.method === "initialize") {
      return (await openSession(this.#parts, connection, { principal, scope, address }, request)).response;
    }
    return session === null ? pong(request) : this.#answerIn(session, connection, request, beside, abort);
  }

  async #answerIn(
    session: McpSession,
    { principal, scope, stream }: SseConnection,
    request: JsonRpcRequest,
    beside: Omit<Origin, "address">,
    abort: AbortController,
  ): Promise<JsonRpcResponse> {
    const { group, owner } = session;
    const era = { era: "legacy" } as const;
    const caller = { principal, scope, client: owner.client, era, group, session, ...beside };
    session.begin(request.id, stream, abort);
    this.#parts.inFlight.begin(principal, scope.id, abort);
    try {
      return await serveRequest(this.#parts, caller, request, stream, abort.signal);
    } finally {
      this.#parts.inFlight.finish(scope.id, abort);
      session.finish(request.id);
    }
  }
}

/** What is known of a message beside itself. */
interface Origin {
  readonly address: string;
  readonly ticket: string | undefined;
  readonly traceparent: string | undefined;
}

/** Before the handshake nothing but `ping` is accepted. */
function pong({ id }: JsonRpcRequest): JsonRpcResponse {
  return { jsonrpc: "2.0", id, result: {} };
}

function isCancelled({ aborted, reason }: AbortSignal): boolean {
  return aborted && GatewayError.from(reason).code === "CANCELLED";
}

/** A label that had no effect would let two agents believe that they are apart. */
function refuseLabel(headers: IncomingHttpHeaders): void {
  if (headers["x-gateway-session-id"] === undefined) return;
  throw new GatewayError(
    "INVALID_HEADER",
    "expected no `x-gateway-session-id`: an SSE connection is a session of its own",
  );
}
