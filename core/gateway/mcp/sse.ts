import type { IncomingHttpHeaders } from "node:http";
import type { Context } from "koa";
import { Cancellation } from "../../action/cancellation.ts";
import { GatewayError } from "../../action/error.ts";
import {
  type JsonRpcMessage,
  type JsonRpcRequest,
  type JsonRpcResponse,
  legacyRevisions,
  type RequestId,
  readJsonRpc,
} from "../../action/json-rpc.ts";
import { type Principal, type SessionScope, sessionScope } from "../../action/principal.ts";
import { addressOf } from "../../http/access.ts";
import { headerText, readGatewayBody } from "../../http/request.ts";
import { singleHeader } from "../../identity/key-ring.ts";
import { bindTask } from "../../manifest/task-binding.ts";
import { ticketHeader } from "../../ticket/ticket-verifier.ts";
import { mcpErrorBody } from "./answer.ts";
import { receiveAnswer, receiveNotification } from "./caller.ts";
import type { McpEndpointParts } from "./endpoint.ts";
import { checkRevisionHeader, classifyEra } from "./era.ts";
import { openSession } from "./handshake.ts";
import { Reply } from "./reply.ts";
import { serveRequest } from "./service.ts";
import type { McpSession } from "./session.ts";
import type { Occupant } from "./session-table.ts";

export interface SseParts extends McpEndpointParts {
  readonly onScopeEnded: ScopeListener;
}

/**
 * HTTP+SSE, the transport of the revision 2024-11-05: a stream that names the URL to post to, and the posts. A post is
 * refused by its status, or answered 202; a request that got 202 is answered on the stream only.
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
    const connection = await sessions.add(principal, async (id) => {
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
    const { body, fairShare } = this.#parts;
    const read = async (): Promise<JsonRpcMessage> =>
      readJsonRpc(await readGatewayBody(ctx.req, body, fairShare, principal));
    await connection.receive(read, async ({ kind, message }) => {
      if (kind === "request") {
        await bindTask(this.#parts.tasks, ctx.req, principal, connection.scope, message.params?._meta);
        return this.#accept(ctx, connection, message, requestId);
      }
      checkRevisionHeader(ctx.req.headers);
      if (kind === "notification") await receiveNotification(connection.session, message);
      else receiveAnswer(connection.session, message);
    });
    ctx.status = 202;
  }

  /** No client waits for the end of a scope: its errors go to the log. */
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
    const ticket = singleHeader(ctx.req.rawHeaders, ticketHeader);
    const origin = { address: addressOf(ctx.req), ticket, traceparent };
    void this.#serve(connection, request, origin, requestId);
  }

  /** Never rejects. A request that the client cancelled is not answered, as the protocol requires. */
  async #serve(connection: SseConnection, request: JsonRpcRequest, origin: Origin, requestId: string): Promise<void> {
    const cancellation = new Cancellation();
    let answer: JsonRpcResponse;
    try {
      answer = await this.#answer(connection, request, origin, cancellation);
    } catch (cause) {
      const error = GatewayError.from(cause);
      this.#parts.onFault(requestId, error);
      answer = mcpErrorBody(error, request.id, requestId);
    }
    connection.finish(request.id, isCancelled(cancellation) ? null : answer);
  }

  async #answer(
    connection: SseConnection,
    request: JsonRpcRequest,
    { address, ...beside }: Origin,
    cancellation: Cancellation,
  ): Promise<JsonRpcResponse> {
    const { principal, scope, session } = connection;
    if (request.method === "initialize") {
      return (await openSession(this.#parts, connection, { principal, scope, address }, request)).response;
    }
    return session === null ? pong(request) : this.#answerIn(session, connection, request, beside, cancellation);
  }

  async #answerIn(
    session: McpSession,
    { principal, scope, stream }: SseConnection,
    request: JsonRpcRequest,
    beside: Omit<Origin, "address">,
    cancellation: Cancellation,
  ): Promise<JsonRpcResponse> {
    const { group, owner } = session;
    const era = { era: "legacy" } as const;
    const caller = { principal, scope, client: owner.client, era, group, session, ...beside };
    session.begin(request.id, stream, cancellation);
    this.#parts.inFlight.begin(principal, scope.id, cancellation);
    try {
      return await serveRequest(this.#parts, caller, request, stream, cancellation);
    } finally {
      this.#parts.inFlight.finish(scope.id, cancellation);
      session.finish(request.id);
    }
  }
}

/** Properties of the HTTP request that carried a message. */
interface Origin {
  readonly address: string;
  readonly ticket: string | undefined;
  readonly traceparent: string | undefined;
}

/** Before the handshake nothing but `ping` is accepted. */
function pong({ id }: JsonRpcRequest): JsonRpcResponse {
  return { jsonrpc: "2.0", id, result: {} };
}

function isCancelled({ aborted, reason }: Cancellation): boolean {
  return aborted && GatewayError.from(reason).code === "CANCELLED";
}

/** Refuses a session label: it would have no effect, and two agents would wrongly expect separate sessions. */
function refuseLabel(headers: IncomingHttpHeaders): void {
  if (headers["x-gateway-session-id"] === undefined) return;
  throw new GatewayError(
    "INVALID_HEADER",
    "expected no `x-gateway-session-id`: an SSE connection is a session of its own",
  );
}

const maxPosts = 64;
const maxRequests = 64;

/** Called once for each used scope, after its last request. */
type ScopeListener = (scope: SessionScope, principal: Principal) => Promise<void>;

/**
 * One client on HTTP+SSE: the stream of all its responses, and the session opened by its handshake. Its scope lives as
 * long as the stream. Its posts are bounded: 64 being received, and 64 requests being served.
 */
export class SseConnection implements Occupant {
  readonly id: string;
  readonly principal: Principal;
  readonly scope: SessionScope;
  readonly stream: Reply;
  readonly #onScopeEnded: ScopeListener;
  #session: McpSession | null = null;
  #opening: Promise<McpSession> | null = null;
  #posts = 0;
  #stopping = false;
  #closed = false;
  #onIdle: () => void = () => undefined;
  readonly #accepted = new Set<RequestId>();

  constructor(id: string, principal: Principal, stream: Reply, onScopeEnded: ScopeListener) {
    this.id = id;
    this.principal = principal;
    this.scope = sessionScope("sse", principal.tenant, principal.id, id);
    this.stream = stream;
    this.#onScopeEnded = onScopeEnded;
  }

  /** Null until the handshake is done. */
  get session(): McpSession | null {
    return this.#session;
  }

  get busy(): boolean {
    return this.stream.open;
  }

  /** Receives one POST. Rejects with CONNECTION_BUSY beyond 64 at once, with SESSION_UNKNOWN after the end of the stream. */
  async receive<T>(read: () => Promise<T>, act: (message: T) => Promise<void>): Promise<void> {
    if (this.#posts >= maxPosts)
      throw new GatewayError("CONNECTION_BUSY", `expected at most ${maxPosts} posts at once`);
    this.#posts++;
    try {
      const message = await read();
      if (!this.stream.open) throw new GatewayError("SESSION_UNKNOWN", "open a new one");
      await act(message);
    } finally {
      this.#posts--;
    }
  }

  /** Registers a request to be answered on the stream by `finish`. Throws where it cannot be. */
  accept({ id, method }: JsonRpcRequest): void {
    if (this.#stopping) throw new GatewayError("STOPPING");
    if (this.#accepted.has(id)) throw new GatewayError("INVALID_REQUEST", "this request id is already in flight");
    if (this.#accepted.size >= maxRequests) {
      throw new GatewayError("CONNECTION_BUSY", `expected at most ${maxRequests} requests in flight`);
    }
    if (method === "initialize" && this.#opening !== null) {
      throw new GatewayError("INVALID_REQUEST", "`initialize` was sent before");
    }
    if (method !== "initialize" && method !== "ping" && this.#session === null) {
      throw new GatewayError("INVALID_REQUEST", "expected `initialize` first");
    }
    this.#accepted.add(id);
  }

  /** Sends the response of a registered request; null: the client no longer wants it. */
  finish(id: RequestId, answer: JsonRpcResponse | null): void {
    this.#accepted.delete(id);
    if (answer !== null) this.stream.send(answer);
    if (this.#stopping) this.#endWhenIdle();
    if (this.#accepted.size === 0) this.#onIdle();
  }

  /** Stores the session opened by the handshake. A failed handshake may be repeated. */
  async add(open: (id: string) => Promise<McpSession>): Promise<McpSession> {
    this.#opening = open(this.id);
    try {
      const session = await this.#opening;
      if (this.#closed) throw new GatewayError("CANCELLED");
      this.#session = session;
      session.attach(this.stream);
      return session;
    } catch (error) {
      if (!this.#closed) this.#opening = null;
      throw error;
    }
  }

  /** Closes a session whose handshake failed after it was stored. The handshake may be repeated. */
  async end(session: McpSession): Promise<void> {
    if (!this.#closed) [this.#session, this.#opening] = [null, null];
    session.detach();
    await session.close();
  }

  /** Accepts no further request, and ends the stream once accepted ones are answered. */
  endStream(): void {
    this.#stopping = true;
    this.#endWhenIdle();
  }

  /** Cancels the requests in flight. The scope ends after the last of them. */
  async close(): Promise<void> {
    this.#closed = true;
    this.stream.end(200);
    const session = await this.#opening?.catch(() => null);
    if (session === null || session === undefined) return;
    await session.close();
    if (this.#accepted.size > 0) await new Promise<void>((resolve) => (this.#onIdle = resolve));
    await this.#onScopeEnded(this.scope, this.principal);
  }

  #endWhenIdle(): void {
    if (this.#accepted.size === 0) this.stream.end(200);
  }
}
