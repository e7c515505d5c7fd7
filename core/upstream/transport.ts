import type { GatewayError } from "../kernel/error.ts";
import type { JsonRpcNotification, JsonRpcRequest, JsonRpcResponse } from "../kernel/json-rpc.ts";
import type { Flight } from "./flight.ts";

/** What a transport tells its connection. `flight` is the request on whose own stream a message came. */
export interface TransportListener {
  onNotification(notification: JsonRpcNotification, flight: Flight | undefined): void;
  onRequest(request: JsonRpcRequest, flight: Flight | undefined): void;
  /**
   * The upstream no longer knows this session, or may not (`certain` is false); it did not take the flight's request,
   * where there is one. Returns whether the flight is taken care of.
   */
  onSessionLost(flight: Flight | undefined, certain: boolean): boolean;
  /** The transport is of no more use. Called at most once, and not after `close`. */
  onClose(error: GatewayError): void;
}

/** Carries JSON-RPC messages to one upstream and back. It knows no handshake, no era and no policy. */
export interface Transport {
  /** How the upstream learns that a request is no longer wanted, beside a notification. */
  readonly hasRequestStreams: boolean;
  /** Must be called once, before anything is sent. */
  listen(listener: TransportListener): void;
  /** Sends the flight's request; its answer or fault goes to the flight. */
  send(flight: Flight): void;
  /** Sends what has no answer. Rejects with UPSTREAM_UNAVAILABLE or UPSTREAM_BUSY. */
  post(message: JsonRpcNotification | JsonRpcResponse): Promise<void>;
  /** The handshake is done: name this revision in headers, and listen for what the server sends of its own accord. */
  begin(revision: string, serverStream: boolean): void;
  /** The upstream lost the session: the next handshake starts without one. */
  forgetSession(): void;
  close(): Promise<void>;
}
