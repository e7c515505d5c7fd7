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

/** One client that shook hands: its connections, its standing stream, and what is in flight in both directions. */
export class McpSession implements Occupant {
  readonly id: string;
  readonly owner: SessionOwner;
  readonly group: UpstreamGroup;
  /** Where what its upstreams say waits to be judged. */
  readonly lanes: LaneTable = new LaneTable();
  /** Upstreams of which an untrusted tool was called: whatever they say from then on may be of strangers. */
  readonly untrusted: Set<string> = new Set();
  #stream: Reply | null = null;
  readonly #backlog = new Backlog();
  readonly #ended = new AbortController();
  #questionCount = 0;
  readonly #questions = new Map<RequestId, (answer: JsonRpcResponse) => void>();
  readonly #inFlight = new Map<RequestId, { readonly reply: Reply; readonly abort: AbortController }>();

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

  /** Aborts when it is over. */
  get ended(): AbortSignal {
    return this.#ended.signal;
  }

  /** Whether the client reads a stream now: `via`, or its standing one. */
  reads(via: Reply): boolean {
    return via.mayStream || this.#stream?.open === true;
  }

  /** Registers a client request for as long as it is served. Throws INVALID_REQUEST for an id already in flight. */
  begin(id: RequestId, reply: Reply, abort: AbortController): void {
    if (this.#inFlight.has(id)) throw new GatewayError("INVALID_REQUEST", "this request id is already in flight");
    this.#inFlight.set(id, { reply, abort });
  }

  finish(id: RequestId): void {
    this.#inFlight.delete(id);
  }

  /** Stops serving a request the client no longer wants; unknown ids are ignored, as the protocol asks. */
  cancel(id: RequestId): void {
    this.#inFlight.get(id)?.abort.abort(new GatewayError("CANCELLED"));
  }

  /** Makes `reply` the standing stream, in place of an earlier one, and sends what waited for it. */
  attach(reply: Reply): void {
    this.#stream?.end(200);
    this.#stream = reply;
    reply.startStream();
    for (const message of this.#backlog.take()) reply.send(message);
  }

  /** Delivers a message to the client: on `via` where it belongs to that request, else on any stream, else later. */
  deliver(message: ServerMessage, via?: Reply): void {
    if (via?.send(message) || this.#stream?.send(message)) return;
    for (const { reply } of this.#inFlight.values()) if (reply.send(message)) return;
    this.#backlog.push(message);
  }

  /**
   * Asks the client something and resolves with its answer. Rejects with the signal's reason when that aborts, and with
   * CLIENT_BUSY where 64 questions are open already.
   */
  ask(request: JsonRpcRequest, signal: AbortSignal, via?: Reply): Promise<JsonRpcResponse> {
    // A signal says only once that it aborts: a question asked after that would stay open for ever.
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

  /** Hands the client's answer to whoever asked. False for an id nobody asked with. */
  answer(response: JsonRpcResponse): boolean {
    const resolve = response.id === null ? undefined : this.#questions.get(response.id);
    resolve?.(response);
    return resolve !== undefined;
  }

  endStream(): void {
    this.#stream?.end(200);
    this.#stream = null;
  }

  /** Cancels what is in flight, ends the stream, closes the connections. */
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
 * What waits for a client that has no stream open: at most 256 messages and 4 MiB. Where there is no room the oldest
 * notifications go first, because a question that is lost leaves an upstream waiting; a message over the bound is lost.
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

  /** Everything that waits, oldest first; nothing waits afterwards. */
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
