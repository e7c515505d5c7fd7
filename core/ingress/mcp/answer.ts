import { GatewayError } from "../../kernel/error.ts";
import type { Json, JsonObject } from "../../kernel/json.ts";
import type { JsonRpcErrorBody, JsonRpcResponse } from "../../kernel/json-rpc.ts";
import type { Answer } from "../../pipeline/answer.ts";

/** A response but for its id, which is the asker's. */
export type ResponseBody = { readonly result: JsonObject } | { readonly error: JsonRpcErrorBody };

/** What was answered, as the road takes it: a tool's own `isError` is an error too. */
export function answerOf(response: JsonRpcResponse): Answer<ResponseBody> {
  if (!("result" in response)) return { status: "error", output: { ...response.error }, makeReply: errorBody };
  return { ...answerOfResult(response.result), status: response.result.isError === true ? "error" : "success" };
}

/** A result of the gateway's own making. */
export function answerOfResult(result: JsonObject): Answer<{ readonly result: JsonObject }> {
  return { status: "success", output: result, makeReply: resultBody };
}

/** Why nothing was sent. Of an error whose text policy redacts, its constant part is left. */
export function answerOfFault(fault: GatewayError): Answer<GatewayError> {
  const output = { code: fault.row.jsonRpc, message: fault.publicMessage };
  const makeReply = (judged: Json): GatewayError => (judged === output ? fault : new GatewayError(fault.code));
  return { status: "error", output, makeReply };
}

/** Redaction changes texts alone, so an output keeps the shape it came in. */
function resultBody(output: Json): { readonly result: JsonObject } {
  return { result: output as JsonObject };
}

function errorBody(output: Json): { readonly error: JsonRpcErrorBody } {
  return { error: output as unknown as JsonRpcErrorBody };
}
