import { GatewayError } from "../kernel/error.ts";
import type { JsonRpcRequest, JsonRpcResponse, RequestId } from "../kernel/json-rpc.ts";

const mostOpen = 64;

/** The requests an upstream has open with us: each answered once, a limited number at a time, and cancellable. */
export class InboundRequests {
  readonly #open: Map<RequestId, AbortController> = new Map();
  readonly #answer: (response: JsonRpcResponse) => void;

  constructor(answer: (response: JsonRpcResponse) => void) {
    this.#answer = answer;
  }

  /** Hands a request to `handle` and its answer, with the request's own id, to the upstream. */
  async serve(request: JsonRpcRequest, handle: (signal: AbortSignal) => Promise<JsonRpcResponse>): Promise<void> {
    const { id } = request;
    if (this.#open.has(id) || this.#open.size >= mostOpen) {
      this.#answer(
        refusal(
          id,
          new GatewayError("INVALID_REQUEST", `expected at most ${mostOpen} open requests, each with its own id`),
        ),
      );
      return;
    }
    const controller = new AbortController();
    this.#open.set(id, controller);
    try {
      const response = await handle(controller.signal);
      if (!controller.signal.aborted) this.#answer({ ...response, id });
    } catch (error) {
      if (!controller.signal.aborted) this.#answer(refusal(id, GatewayError.from(error)));
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

function refusal(id: RequestId, error: GatewayError): JsonRpcResponse {
  return { jsonrpc: "2.0", id, error: { code: error.row.jsonRpc, message: error.publicMessage } };
}
