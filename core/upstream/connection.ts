import type { JsonObject } from "../kernel/json.ts";
import type { JsonRpcNotification, JsonRpcRequest, JsonRpcResponse } from "../kernel/json-rpc.ts";
import type { McpEra } from "../kernel/mcp.ts";

/** What the upstream said of itself in the handshake. */
export interface ServerDescription {
  readonly era: McpEra;
  readonly revision: string;
  readonly capabilities: JsonObject;
  readonly serverInfo: JsonObject;
  readonly instructions?: string;
}

export interface OutgoingRequest {
  readonly method: string;
  readonly params?: JsonObject;
}

export type ServerRequestHandler = (request: JsonRpcRequest, signal: AbortSignal) => Promise<JsonRpcResponse>;

/** One request in flight, as its caller sees it. */
export interface Exchange {
  /**
   * Becomes `params._meta`. A `progressToken` is replaced on the wire by the connection's own and restored in
   * the notifications handed to `onNotification`.
   */
  readonly meta?: JsonObject;
  /** The header of that name, where the transport has headers. */
  readonly traceparent?: string;
  /** Abort: the upstream is told to stop, and the promise rejects with the signal's reason. */
  readonly signal?: AbortSignal;
  /**
   * Notifications that belong to this request: of its progress token, of its subscription, or on its own HTTP
   * stream. A subscription id in them is the connection's own, like the id in the response.
   */
  readonly onNotification?: (notification: JsonRpcNotification) => void;
  /** Server-to-client requests on this request's own HTTP stream; without it they go to the listener. */
  readonly onRequest?: ServerRequestHandler;
}

/** What a connection has to say outside of any request. Calls must return at once; they are not awaited. */
export interface ConnectionListener {
  onNotification(upstream: string, notification: JsonRpcNotification): void;
  onRequest(upstream: string, request: JsonRpcRequest, signal: AbortSignal): Promise<JsonRpcResponse>;
  /** The upstream ended the connection. Not called for what the gateway closed itself (idle, stop). */
  onClose(upstream: string, reason: string): void;
}

/** One open, initialized connection. Safe for concurrent requests. */
export interface UpstreamConnection {
  readonly upstream: string;
  readonly server: ServerDescription;
  /**
   * Resolves with the upstream's answer, result or error, as it came; its id is the connection's own.
   * Rejects with UPSTREAM_UNAVAILABLE, UPSTREAM_TIMEOUT, UPSTREAM_INVALID or UPSTREAM_BUSY, or with the reason of
   * the exchange's signal. A request is never sent twice unless the upstream said it did not take it.
   */
  request(request: OutgoingRequest, exchange?: Exchange): Promise<JsonRpcResponse>;
  notify(notification: OutgoingRequest): Promise<void>;
  /** Resolves when the upstream's process or stream is gone. */
  close(): Promise<void>;
}
