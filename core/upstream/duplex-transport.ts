import { GatewayError } from "../action/error.ts";
import type { Clock } from "../action/id.ts";
import { JoinedBytes } from "../action/joined-bytes.ts";
import type { JsonRpcMessage, JsonRpcNotification, JsonRpcResponse } from "../action/json-rpc.ts";
import type { JsonData } from "../action/strict-json.ts";
import { MessageReader, type MessageSource } from "./message-reader.ts";
import {
  type Flight,
  FloodGate,
  guessId,
  type McpTransport,
  oversizedReply,
  type ReplyBounds,
  type TransportListener,
} from "./transport.ts";

export interface PipeListener {
  /** The bytes of one message. */
  onMessage(data: JsonData): void;
  /** A message beyond the bound was skipped; `head` and `tail` are its first and last bytes. */
  onLongMessage(head: Buffer, tail: Buffer): void;
  onEnd(error: GatewayError): void;
}

/** One ordered stream of messages in each direction. */
export interface Pipe extends MessageSource {
  listen(listener: PipeListener): void;
  /**
   * Sends one message; `done` is called once, with the fault if the message was not accepted. `headers`, as name and
   * value, are sent with it where the pipe has headers.
   */
  write(text: string, done: (fault?: GatewayError) => void, headers?: readonly string[]): void;
  close(): Promise<void>;
}

/** Bytes at either end of a message in which its id is looked for. */
const edge = 256;

/**
 * JSON-RPC over a pipe: matches responses to requests by id. A message that cannot be parsed fails the request whose id
 * is visible in it, else the whole connection.
 */
export class DuplexTransport implements McpTransport {
  readonly hasRequestStreams = false;
  readonly #pipe: Pipe;
  readonly #bounds: ReplyBounds;
  readonly #reader: MessageReader;
  readonly #gate: FloodGate;
  readonly #flights: Map<number, Flight> = new Map();
  #listener!: TransportListener;
  #highestId = 0;
  #isClosed = false;

  constructor(pipe: Pipe, bounds: ReplyBounds, clock: Clock) {
    this.#pipe = pipe;
    this.#bounds = bounds;
    this.#reader = new MessageReader({ bounds, source: pipe });
    this.#gate = new FloodGate(clock);
  }

  listen(listener: TransportListener): void {
    this.#listener = listener;
    this.#pipe.listen({
      onMessage: (data) => this.#onMessage(data),
      onLongMessage: (head, tail) => {
        this.#reader.follow(() => this.#onUnreadable(oversizedReply(this.#bounds), head, tail));
      },
      onEnd: (error) => this.#reader.follow(() => this.#end(error)),
    });
  }

  send(flight: Flight): void {
    const id = flight.request.id as number;
    const { traceparent } = flight.exchange;
    this.#highestId = Math.max(this.#highestId, id);
    this.#flights.set(id, flight);
    flight.release = () => this.#flights.delete(id);
    const done = (fault?: GatewayError): void => {
      if (fault !== undefined) flight.settle({ fault });
    };
    const headers = traceparent === undefined ? [] : ["traceparent", traceparent];
    this.#pipe.write(JSON.stringify(flight.request), done, headers);
  }

  post(message: JsonRpcNotification | JsonRpcResponse): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#pipe.write(JSON.stringify(message), (fault) => (fault === undefined ? resolve() : reject(fault)));
    });
  }

  begin(): void {
    // A pipe has no headers, and carries the server's own messages anyway.
  }

  forgetSession(): void {
    // A pipe has no session apart from itself.
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    await this.#pipe.close();
  }

  #onMessage(data: JsonData): void {
    if (this.#isClosed) return;
    const refuse = (error: GatewayError): void => {
      const bytes = data instanceof JoinedBytes ? data : new JoinedBytes(0).add(Buffer.from(data));
      this.#onUnreadable(error, ...bytes.ends(edge));
    };
    this.#reader.read(data, (message) => this.#onRead(message, data.length), refuse);
  }

  #onRead({ kind, message }: JsonRpcMessage, bytes: number): void {
    if (this.#isClosed) return;
    if (kind === "response") this.#onResponse(message, bytes);
    else if (!this.#admit(bytes)) return;
    else if (kind === "notification") this.#listener.onNotification(message, undefined);
    else this.#listener.onRequest(message, undefined);
  }

  #onResponse(response: JsonRpcResponse, bytes: number): void {
    const { id } = response;
    const flight = typeof id === "number" ? this.#flights.get(id) : this.#onlyFlight(id);
    if (flight !== undefined) flight.settle({ response });
    else if (typeof id === "number" && id > 0 && id <= this.#highestId) this.#admit(bytes);
    else this.#fail(new GatewayError("UPSTREAM_INVALID", "expected the id of a request, got an answer to none"));
  }

  /** The single request in flight, which an error without an id must belong to. */
  #onlyFlight(id: string | null): Flight | undefined {
    return id === null && this.#flights.size === 1 ? this.#flights.values().next().value : undefined;
  }

  #onUnreadable(error: GatewayError, head: Buffer, tail: Buffer): void {
    if (this.#isClosed) return;
    const id = guessId(head, tail);
    const flight = id === undefined ? this.#onlyFlight(null) : this.#flights.get(id);
    if (flight === undefined) this.#fail(error);
    else flight.settle({ fault: error });
  }

  /** Counts an unsolicited message; false where the upstream exceeded the limit, which ends the connection. */
  #admit(bytes: number): boolean {
    try {
      this.#gate.admit(bytes);
      return true;
    } catch (error) {
      this.#fail(GatewayError.from(error));
      return false;
    }
  }

  /** Closes the pipe to an upstream that is still running. */
  #fail(error: GatewayError): void {
    this.#end(error);
    void this.#pipe.close();
  }

  #end(error: GatewayError): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#listener.onClose(error);
  }
}
