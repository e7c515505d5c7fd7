import { GatewayError } from "../action/error.ts";
import type { Clock } from "../action/id.ts";
import type { JsonRpcMessage, JsonRpcNotification, JsonRpcRequest, JsonRpcResponse } from "../action/json-rpc.ts";
import { FloodGate } from "./change-watch.ts";
import { type Flight, guessId, oversized, type ReplyBounds, readReply } from "./flight.ts";

export interface PipeListener {
  /** The bytes of one message. */
  onMessage(data: Buffer | string): void;
  /** A message beyond the bound was skipped; its first and last bytes are left. */
  onLongMessage(head: Buffer, tail: Buffer): void;
  onEnd(error: GatewayError): void;
}

/** One ordered stream of messages in each direction. */
export interface Pipe {
  listen(listener: PipeListener): void;
  /**
   * Sends one message; `done` is called once, with the fault if this message was not taken. `headers`, as name and value,
   * go with it where the pipe has some.
   */
  write(text: string, done: (fault?: GatewayError) => void, headers?: readonly string[]): void;
  close(): Promise<void>;
}

/**
 * JSON-RPC over a pipe: finds the request that an answer belongs to.
 * What cannot be read fails the request it belongs to where that can be seen, else the whole connection.
 */
export class DuplexTransport implements Transport {
  readonly hasRequestStreams = false;
  readonly #pipe: Pipe;
  readonly #bounds: ReplyBounds;
  readonly #gate: FloodGate;
  readonly #flights: Map<number, Flight> = new Map();
  #listener!: TransportListener;
  #highestId = 0;
  #closed = false;

  constructor(pipe: Pipe, bounds: ReplyBounds, clock: Clock) {
    this.#pipe = pipe;
    this.#bounds = bounds;
    this.#gate = new FloodGate(clock);
  }

  listen(listener: TransportListener): void {
    this.#listener = listener;
    this.#pipe.listen({
      onMessage: (data) => this.#onMessage(data),
      onLongMessage: (head, tail) => this.#onUnreadable(oversized(this.#bounds), head, tail),
      onEnd: (error) => this.#end(error),
    });
  }

  send(flight: Flight): void {
    const id = flight.request.id as number;
    this.#highestId = Math.max(this.#highestId, id);
    this.#flights.set(id, flight);
    flight.release = () => this.#flights.delete(id);
    const done = (fault?: GatewayError): void => {
      if (fault !== undefined) flight.reject(fault);
    };
    this.#pipe.write(JSON.stringify(flight.request), done, flight.traceHeader);
  }

  post(message: JsonRpcNotification | JsonRpcResponse): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#pipe.write(JSON.stringify(message), (fault) => (fault === undefined ? resolve() : reject(fault)));
    });
  }

  begin(): void {
    // A pipe has no headers, and server messages come on it anyway.
  }

  forgetSession(): void {
    // A pipe is its session.
  }

  async close(): Promise<void> {
    this.#closed = true;
    await this.#pipe.close();
  }

  #onMessage(data: Buffer | string): void {
    if (this.#closed) return;
    let read: JsonRpcMessage;
    try {
      read = readReply(data, this.#bounds);
    } catch (error) {
      const bytes = Buffer.from(data);
      this.#onUnreadable(GatewayError.from(error), bytes.subarray(0, 256), bytes.subarray(-256));
      return;
    }
    if (read.kind === "response") this.#onResponse(read.message, data.length);
    else if (!this.#admit(data.length)) return;
    else if (read.kind === "notification") this.#listener.onNotification(read.message, undefined);
    else this.#listener.onRequest(read.message, undefined);
  }

  #onResponse(response: JsonRpcResponse, bytes: number): void {
    const { id } = response;
    const flight = typeof id === "number" ? this.#flights.get(id) : this.#onlyFlight(id);
    if (flight !== undefined) flight.resolve(response);
    else if (typeof id === "number" && id > 0 && id <= this.#highestId) this.#admit(bytes);
    else this.#fail(new GatewayError("UPSTREAM_INVALID", "expected the id of a request, got an answer to none"));
  }

  /** An error without an id says that a request could not be read; with one in flight it is clear which. */
  #onlyFlight(id: string | null): Flight | undefined {
    return id === null && this.#flights.size === 1 ? this.#flights.values().next().value : undefined;
  }

  #onUnreadable(error: GatewayError, head: Buffer, tail: Buffer): void {
    if (this.#closed) return;
    const id = guessId(head, tail);
    const flight = id === undefined ? this.#onlyFlight(null) : this.#flights.get(id);
    if (flight === undefined) this.#fail(error);
    else flight.reject(error);
  }

  #admit(bytes: number): boolean {
    const admitted = this.#gate.admit(bytes);
    if (!admitted) this.#fail(new GatewayError("UPSTREAM_INVALID", "the upstream floods the gateway with messages"));
    return admitted;
  }

  /** Gives up on an upstream that is still there. */
  #fail(error: GatewayError): void {
    this.#end(error);
    void this.#pipe.close();
  }

  #end(error: GatewayError): void {
    if (this.#closed) return;
    this.#closed = true;
    this.#listener.onClose(error);
  }
}

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
