import type { ClientIdentity } from "../../kernel/envelope.ts";
import type { JsonRpcRequest } from "../../kernel/json-rpc.ts";
import type { Principal } from "../../kernel/principal.ts";
import type { SessionScope } from "../../kernel/session-scope.ts";
import type { UpstreamGroup } from "../../upstream/group.ts";
import type { Era } from "./era.ts";
import type { Reply } from "./reply.ts";
import type { McpSession } from "./session.ts";

/** Who sent one MCP request, and through what. */
export interface Caller {
  readonly principal: Principal;
  readonly scope: SessionScope;
  readonly client: ClientIdentity;
  readonly era: Era;
  /** The upstream connections that serve this caller. */
  readonly group: UpstreamGroup;
  /** The session a handshake opened; null for stateless and direct requests. */
  readonly session: McpSession | null;
  /** The token in the request's header. It is told to nobody. */
  readonly ticket: string | undefined;
  /** What the request's headers say of its trace. */
  readonly traceparent: string | undefined;
}

/** A request for as long as it is served. */
export interface OpenRequest {
  readonly caller: Caller;
  readonly request: JsonRpcRequest;
  /** Where its answer goes, and what is said before that. */
  readonly reply: Reply;
  /** Aborts when the client wants no answer any more. */
  readonly signal: AbortSignal;
}
