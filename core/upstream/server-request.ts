import { GatewayError } from "../action/error.ts";
import type { JsonRpcRequest, JsonRpcResponse, RequestId } from "../action/json-rpc.ts";

const maxOpen = 64;

/** The open requests of an upstream to its client: each is answered once, at most 64 at a time, and can be cancelled. */
export class ServerRequests {
  readonly #open: Map<RequestId, AbortController> = new Map();
  readonly #respond: (response: JsonRpcResponse) => void;

  constructor(respond: (response: JsonRpcResponse) => void) {
    this.#respond = respond;
  }

  /** Passes a request to `handle` and sends its response, with the request's own id, to the upstream. */
  async serve(request: JsonRpcRequest, handle: (signal: AbortSignal) => Promise<JsonRpcResponse>): Promise<void> {
    const { id } = request;
    if (this.#open.has(id) || this.#open.size >= maxOpen) {
      const detail = `expected at most ${maxOpen} open requests, each with its own id`;
      this.#respond(errorResponse(id, new GatewayError("INVALID_REQUEST", detail)));
      return;
    }
    const controller = new AbortController();
    this.#open.set(id, controller);
    try {
      const response = await handle(controller.signal);
      if (!controller.signal.aborted) this.#respond({ ...response, id });
    } catch (error) {
      if (!controller.signal.aborted) this.#respond(errorResponse(id, GatewayError.from(error)));
    } finally {
      this.#open.delete(id);
    }
  }

  /** Returns whether there was such a request. A cancelled one is not answered. */
  cancel(id: RequestId): boolean {
    const controller = this.#open.get(id);
    controller?.abort(new GatewayError("UPSTREAM_UNAVAILABLE", "the upstream cancelled its request"));
    return controller !== undefined;
  }

  cancelAll(reason: GatewayError): void {
    for (const controller of this.#open.values()) controller.abort(reason);
  }
}

function errorResponse(id: RequestId, error: GatewayError): JsonRpcResponse {
  return { jsonrpc: "2.0", id, error: { code: error.row.jsonRpc, message: error.publicMessage } };
}
