import type { Cancellation } from "../../action/cancellation.ts";
import type { ClientIdentity } from "../../action/envelope.ts";
import { GatewayError } from "../../action/error.ts";
import type { JsonObject } from "../../action/json.ts";
import type { JsonRpcRequest, JsonRpcResponse, RequestId } from "../../action/json-rpc.ts";
import type { Principal } from "../../action/principal.ts";
import type { UpstreamGroup } from "../../upstream/group.ts";
import { LaneTable } from "./notification.ts";
import type { Reply, ServerMessage } from "./reply.ts";
import type { Occupant } from "./session-table.ts";

const maxQuestions = 64;

export interface SessionOwner {
  readonly principal: Principal;
  readonly client: ClientIdentity;
  readonly capabilities: JsonObject;
}

/** One initialized client: its upstream connections, its standing stream, and the requests in flight in both directions. */
export class McpSession implements Occupant {
  readonly id: string;
  readonly owner: SessionOwner;
  readonly group: UpstreamGroup;
  /** The queues of upstream notifications that wait for evaluation. */
  readonly lanes: LaneTable = new LaneTable();
  /** Upstreams of which an untrusted tool was called: all they send from then on may be untrusted content. */
  readonly untrusted: Set<string> = new Set();
  #stream: Reply | null = null;
  readonly #backlog = new Backlog();
  readonly #ended = new AbortController();
  #questionCount = 0;
  readonly #questions = new Map<RequestId, (answer: JsonRpcResponse) => void>();
  readonly #inFlight = new Map<RequestId, { readonly reply: Reply; readonly abort: Pick<Cancellation, "abort"> }>();

  constructor(id: string, owner: SessionOwner, group: UpstreamGroup) {
    this.id = id;
    this.owner = owner;
    this.group = group;
  }

  get principal(): Principal {
    return this.owner.principal;
  }

  get busy(): boolean {
    return this.#inFlight.size > 0 || this.#stream?.open === true;
  }

  /** Aborts when the session ends. */
  get ended(): AbortSignal {
    return this.#ended.signal;
  }

  /** True while the client reads a stream: `via`, or its standing one. */
  reads(via: Reply): boolean {
    return via.mayStream || this.#stream?.open === true;
  }

  /** Registers a client request while it is served. Throws INVALID_REQUEST for an id already in flight. */
  begin(id: RequestId, reply: Reply, abort: Pick<Cancellation, "abort">): void {
    if (this.#inFlight.has(id)) throw new GatewayError("INVALID_REQUEST", "this request id is already in flight");
    this.#inFlight.set(id, { reply, abort });
  }

  finish(id: RequestId): void {
    this.#inFlight.delete(id);
  }

  /** Cancels a request; unknown ids are ignored, as the protocol requires. */
  cancel(id: RequestId): void {
    this.#inFlight.get(id)?.abort.abort(new GatewayError("CANCELLED"));
  }

  /** Makes `reply` the standing stream, replacing an earlier one, and sends the backlog. */
  attach(reply: Reply): void {
    this.#stream?.end(200);
    this.#stream = reply;
    reply.startStream();
    for (const message of this.#backlog.take()) reply.send(message);
  }

  /** Delivers a message: on `via` where it belongs to that request, else on any open stream, else on the next one. */
  deliver(message: ServerMessage, via?: Reply): void {
    if (via?.send(message) || this.#stream?.send(message)) return;
    for (const { reply } of this.#inFlight.values()) if (reply.send(message)) return;
    this.#backlog.push(message);
  }

  /**
   * Sends a request to the client and resolves with its response. Rejects with the signal's reason when it aborts, and with
   * CLIENT_BUSY while 64 such requests are open.
   */
  ask(request: JsonRpcRequest, signal: AbortSignal, via?: Reply): Promise<JsonRpcResponse> {
    // An aborted signal fires no further event: a question asked after that would stay open forever.
    if (signal.aborted) return Promise.reject(signal.reason);
    if (this.#questions.size >= maxQuestions) {
      return Promise.reject(
        new GatewayError("CLIENT_BUSY", `expected at most ${maxQuestions} open questions to the client`),
      );
    }
    const id = `gateway-${++this.#questionCount}`;
    return new Promise((resolve, reject) => {
      const stop = (): void => {
        this.#questions.delete(id);
        this.deliver({ jsonrpc: "2.0", method: "notifications/cancelled", params: { requestId: id } }, via);
        reject(signal.reason);
      };
      signal.addEventListener("abort", stop, { once: true });
      this.#questions.set(id, (answer) => {
        this.#questions.delete(id);
        signal.removeEventListener("abort", stop);
        resolve(answer);
      });
      this.deliver({ ...request, id }, via);
    });
  }

  /** Resolves the request that a client's response belongs to. False for an unknown id. */
  answer(response: JsonRpcResponse): boolean {
    const resolve = response.id === null ? undefined : this.#questions.get(response.id);
    resolve?.(response);
    return resolve !== undefined;
  }

  /** Lets go of the standing stream without ending it. */
  detach(): void {
    this.#stream = null;
  }

  endStream(): void {
    this.#stream?.end(200);
    this.#stream = null;
  }

  /** Cancels requests in flight, ends the stream, closes the connections. */
  async close(): Promise<void> {
    this.#ended.abort();
    for (const id of this.#inFlight.keys()) this.cancel(id);
    this.endStream();
    await this.group.close();
  }
}

const maxMessages = 256;
const maxBytes = 4 * 1024 * 1024;

/**
 * Messages for a client without an open stream: at most 256, and 4 MiB. Beyond that the oldest notifications are dropped
 * first, because a dropped request leaves an upstream waiting; a message over the bound is dropped.
 */
export class Backlog {
  #waiting: { readonly message: ServerMessage; readonly bytes: number }[] = [];
  #bytes = 0;

  push(message: ServerMessage): void {
    const bytes = Buffer.byteLength(JSON.stringify(message));
    if (bytes > maxBytes) return;
    this.#waiting.push({ message, bytes });
    this.#bytes += bytes;
    while (this.#waiting.length > maxMessages || this.#bytes > maxBytes) this.#dropOne();
  }

  /** Removes and returns all messages, oldest first. */
  take(): readonly ServerMessage[] {
    const taken = this.#waiting.map(({ message }) => message);
    this.#waiting = [];
    this.#bytes = 0;
    return taken;
  }

  #dropOne(): void {
    const oldest = this.#waiting.findIndex(({ message }) => !("id" in message));
    const [dropped] = this.#waiting.splice(Math.max(oldest, 0), 1);
    this.#bytes -= dropped?.bytes ?? 0;
  }
}
