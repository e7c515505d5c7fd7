import type { Json, JsonObject } from "../../../action/json.ts";
import type { WireEvent } from "../event-reader.ts";

/** An error that ends a stream of the responses API. */
export interface ResponseFailure {
  /** As the API's error bodies have it. */
  readonly error: JsonObject;
  /** True if clients must not repeat the request. */
  readonly isFinal: boolean;
  /** The number of the event. */
  readonly sequence: number;
  /** Members of the response so far: its id, its model and the time it was made. */
  readonly head: JsonObject;
}

/**
 * Writes the end of a stream that failed: an `error` event and the failed response, as one, because some clients read only
 * the one and some only the other. The failed response has a code of the API's own list: clients repeat what has another.
 */
export function failureEvent({ error, isFinal, sequence, head }: ResponseFailure): WireEvent {
  const { message = "", code = null, param = null } = error;
  const failed = {
    ...head,
    object: "response",
    status: "failed",
    error: { code: listedCode(code, isFinal), message },
    incomplete_details: null,
    output: [],
  };
  const data = JSON.stringify({ type: "error", sequence_number: sequence, code, message, param, error });
  const last = JSON.stringify({ type: "response.failed", sequence_number: sequence + 1, response: failed });
  const raw = Buffer.from(`event: error\ndata: ${data}\n\nevent: response.failed\ndata: ${last}\n\n`);
  return { event: "error", data, raw };
}

function listedCode(code: Json, isFinal: boolean): string {
  if (code === "rate_limit_exceeded") return code;
  return isFinal ? "invalid_prompt" : "server_error";
}
