import type { CancelSignal } from "../action/cancellation.ts";
import type { Capability } from "../action/capability.ts";
import type { JsonObject } from "../action/json.ts";
import type { JsonRpcNotification, JsonRpcRequest, JsonRpcResponse, McpEra } from "../action/json-rpc.ts";
import type { PlaceHolder } from "../action/place-share.ts";

/** An upstream's description of itself in the handshake. */
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

/** The caller's side of one request in flight. */
export interface Exchange {
  /**
   * Becomes `params._meta`. A `progressToken` is replaced on the wire by the connection's own and restored in
   * the notifications passed to `onNotification`.
   */
  readonly meta?: JsonObject;
  /** The header of that name, where the transport has headers. */
  readonly traceparent?: string;
  /** Resolves in a later turn of the event loop: a large request is sent, and a large response read, over several of them. */
  readonly pause?: () => Promise<void>;
  /** On abort, the upstream is asked to stop and the promise rejects with the signal's reason. */
  readonly signal?: CancelSignal;
  /**
   * Notifications that belong to this request: of its progress token, of its subscription, or on its own HTTP
   * stream. A subscription id in them is the connection's own, like the id in the response.
   */
  readonly onNotification?: (notification: JsonRpcNotification) => void;
  /** Server-to-client requests on this request's own HTTP stream; without it they go to the listener. */
  readonly onRequest?: ServerRequestHandler;
}

/** Receives messages that belong to no request. Calls must return at once; they are not awaited. */
export interface ConnectionListener {
  onNotification(upstream: string, notification: JsonRpcNotification): void;
  onRequest(upstream: string, request: JsonRpcRequest, signal: AbortSignal): Promise<JsonRpcResponse>;
  /** The upstream ended the connection. Not called where the gateway closed it (idle, shutdown). */
  onClose(upstream: string, reason: string): void;
}

/** One open, initialized connection. Safe for concurrent requests. */
export interface UpstreamConnection {
  readonly upstream: string;
  readonly server: ServerDescription;
  /**
   * Resolves with the upstream's response, result or error, unchanged but for its id, which is the connection's own.
   * Rejects with UPSTREAM_UNAVAILABLE, UPSTREAM_TIMEOUT, UPSTREAM_INVALID or UPSTREAM_BUSY, or with the reason of
   * the exchange's signal. A request is never sent twice unless the upstream reported that it did not process it.
   */
  request(request: OutgoingRequest, exchange?: Exchange): Promise<JsonRpcResponse>;
  notify(notification: OutgoingRequest): Promise<void>;
  /** Resolves when the upstream's process or stream is gone. */
  close(): Promise<void>;
}

/** The client that a group of connections serves. */
export interface GroupScope {
  /** The key that the group's own connections count towards; null for those of the gateway itself. */
  readonly holder: PlaceHolder | null;
  /** The client's protocol era; responses are translated to it, whatever the upstream speaks. */
  readonly era: McpEra;
  /** The gateway's own: what a client calls itself is judged by nobody, and reaches no upstream. */
  readonly clientInfo: JsonObject;
  readonly capabilities: JsonObject;
  readonly listener: ConnectionListener;
}

/** An event for the operator's log; `kind` is the name of the log event. */
export type UpstreamEvent =
  | { readonly kind: "upstream_starting"; readonly upstream: string }
  | { readonly kind: "upstream_connected"; readonly upstream: string; readonly era: string; readonly revision: string }
  | { readonly kind: "upstream_closed"; readonly upstream: string; readonly reason: string }
  | {
      readonly kind: "upstream_retry_scheduled";
      readonly upstream: string;
      readonly delayMs: number;
      readonly failures: number;
    }
  /** A tool, prompt or resource of the upstream is hidden from clients. */
  | {
      readonly kind: "upstream_item_withheld";
      readonly upstream: string;
      readonly name: string;
      readonly reason: string;
    }
  /** A connection could not be opened, or a list could not be read. */
  | { readonly kind: "upstream_failed"; readonly upstream: string; readonly reason: string }
  /** A line of the process's standard error, or a line of its standard output that is no message. */
  | { readonly kind: "upstream_output_logged"; readonly upstream: string; readonly line: string };

export type UpstreamEventSink = (event: UpstreamEvent) => void;

export interface UpstreamHealth {
  readonly name: string;
  readonly transport: "stdio" | "http" | "sse";
  /**
   * `idle`: not used yet, or no longer; `starting`: opening a first connection; `down`: the last attempt failed or the last
   * connection was lost, and the next attempt is scheduled.
   */
  readonly state: "idle" | "starting" | "up" | "down";
  readonly connections: number;
  readonly failures: number;
  /** The fault, where it is down. */
  readonly reason?: string;
}

/** A tool whose annotations claim more than the operator stated. The statement is in force. */
export interface Contradiction {
  readonly tool: string;
  readonly stated: Capability;
  readonly annotated: Capability;
}

export interface Withheld {
  readonly upstream: string;
  readonly name: string;
  readonly reason: string;
}
