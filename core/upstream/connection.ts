import type { JsonObject } from "../action/json.ts";
import type { JsonRpcNotification, JsonRpcRequest, JsonRpcResponse, McpEra } from "../action/json-rpc.ts";
import type { Catalog } from "./catalog.ts";

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

type ServerRequestHandler = (request: JsonRpcRequest, signal: AbortSignal) => Promise<JsonRpcResponse>;

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

/** One upstream as one group uses it: a connection that is opened when needed, and what can be had there. */
export interface Link {
  readonly upstream: string;
  readonly catalog: Catalog;
  /** Whether the last attempt to reach the upstream failed. */
  readonly failing: boolean;
  /** The open connection, or a promise of it. Rejects where it cannot be had. */
  connection(): UpstreamConnection | Promise<UpstreamConnection>;
  close(): Promise<void>;
}

/** For whom a group of connections is opened. */
export interface GroupScope {
  /** What the client speaks; answers come in its words, whatever the upstream speaks. */
  readonly era: McpEra;
  readonly clientInfo: JsonObject;
  readonly capabilities: JsonObject;
  readonly listener: ConnectionListener;
}

/** What the fleet reports to the operator's log. */
export type UpstreamEvent =
  | { readonly kind: "connected"; readonly upstream: string; readonly era: string; readonly revision: string }
  | { readonly kind: "closed"; readonly upstream: string; readonly reason: string }
  | { readonly kind: "restarting"; readonly upstream: string; readonly delayMs: number; readonly failures: number }
  /** Something the upstream offers is not shown to clients. */
  | { readonly kind: "withheld"; readonly upstream: string; readonly name: string; readonly reason: string }
  /** A connection could not be opened, or a list could not be read. */
  | { readonly kind: "refused"; readonly upstream: string; readonly reason: string }
  /** A line of the process's standard error, or what it wrote to standard output that is no message. */
  | { readonly kind: "log"; readonly upstream: string; readonly line: string };

export type EventSink = (event: UpstreamEvent) => void;

export interface UpstreamHealth {
  readonly name: string;
  readonly transport: "stdio" | "http" | "sse";
  /** `idle`: nothing asked for it yet; `down`: the last attempt failed or the last connection was lost. */
  readonly state: "idle" | "up" | "down";
  readonly connections: number;
  readonly failures: number;
  /** Why it is down. */
  readonly reason?: string;
}

export interface Withheld {
  readonly upstream: string;
  readonly name: string;
  readonly reason: string;
}
