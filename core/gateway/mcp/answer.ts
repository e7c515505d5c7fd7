import type { Context } from "koa";
import { type ErrorCode, GatewayError } from "../../action/error.ts";
import type { Json, JsonObject } from "../../action/json.ts";
import type { JsonRpcErrorBody, JsonRpcResponse, McpEra, RequestId } from "../../action/json-rpc.ts";
import {
  decisiveReason,
  type Refusal,
  refusalDetail,
  refusalError,
  refusalMeta,
  retryAfter,
  retryAfterHeader,
} from "../../http/refusal.ts";
import type { Answer } from "../../road/dispatch.ts";
import { type RunResult, withUsedApproval } from "../../road/run.ts";

/** A response without its id, which belongs to the request. */
export type ResponseBody = { readonly result: JsonObject } | { readonly error: JsonRpcErrorBody };

/** The output of a response. A result with `isError` is an error too. */
export function answerOf(response: JsonRpcResponse): Answer<ResponseBody> {
  if (!("result" in response)) return { status: "error", output: { ...response.error }, makeReply: errorBody };
  const status = response.result.isError === true ? "error" : "success";
  return { status, output: response.result, makeReply: resultBody };
}

/** The output of a result that the gateway makes itself. */
export function answerOfResult(result: JsonObject): Answer<{ readonly result: JsonObject }> {
  return { status: "success", output: result, makeReply: resultBody };
}

/** The output of an error. Where policy redacts its text, the constant part is left. */
export function answerOfFault(fault: GatewayError): Answer<GatewayError> {
  const output = { code: fault.row.jsonRpc, message: fault.publicMessage };
  const makeReply = (judged: Json): GatewayError => (judged === output ? fault : new GatewayError(fault.code));
  return { status: "error", output, makeReply };
}

/**
 * Returns the reply of an answered action. Throws POLICY_BLOCKED, REVIEW_REQUIRED, APPROVAL_DENIED or APPROVAL_QUEUE_FULL where it was
 * refused: a request that is not a tool call has no result shape for it. An error that used up an approval says so.
 */
export function replyOf<Reply>(result: RunResult<Reply | GatewayError>): Reply {
  if (result.kind !== "answered") throw refusalError(result);
  const { reply, approvalId } = result;
  if (!(reply instanceof GatewayError)) return reply;
  throw approvalId === undefined ? reply : withUsedApproval(reply, approvalId);
}

/** Redaction changes strings only: an output keeps its shape. */
function resultBody(output: Json): { readonly result: JsonObject } {
  return { result: output as JsonObject };
}

function errorBody(output: Json): { readonly error: JsonRpcErrorBody } {
  return { error: output as unknown as JsonRpcErrorBody };
}

/**
 * A refused tool call as clients keep it intact: a tool result with `isError`, words for the model, data for machines.
 * Real clients lose or misread every other shape.
 */
export function refusedToolResult(id: RequestId, era: McpEra, refusal: Refusal): JsonRpcResponse {
  const result: JsonObject = {
    content: [{ type: "text", text: refusalText(refusal) }],
    isError: true,
    _meta: refusalMeta(refusal),
    ...(era === "modern" ? { resultType: "complete" } : {}),
  };
  return { jsonrpc: "2.0", id, result };
}

function refusalText(refusal: Refusal): string {
  if (refusal.kind === "withheld") {
    const { approvalId, evaluation } = refusal;
    const lost = approvalId === undefined ? "" : ` Approval ${approvalId} is used up.`;
    return `The action ran, but policy withheld its answer: ${decisiveReason(evaluation)}.${lost} Decision ${evaluation.id}.`;
  }
  const verb = refusal.evaluation.decision === "review" ? "Held for review" : "Blocked by policy";
  return `${verb}: ${refusalDetail(refusal)}`;
}

/**
 * Errors about what a well-formed request asks for. They are answers (HTTP 200 with a JSON-RPC error), because
 * clients hand these to the model and treat every other status as a broken connection.
 */
const inBand: ReadonlySet<ErrorCode> = new Set([
  "INVALID_PARAMS",
  "ENVELOPE_BOUND",
  "TOOL_UNKNOWN",
  "RESOURCE_UNKNOWN",
  "PROMPT_UNKNOWN",
  "UPSTREAM_STARTING",
  "UPSTREAM_UNAVAILABLE",
  "UPSTREAM_TIMEOUT",
  "UPSTREAM_INVALID",
  "POLICY_BLOCKED",
  "REVIEW_REQUIRED",
  "SESSION_KILLED",
  "APPROVAL_DENIED",
  "APPROVAL_QUEUE_FULL",
  "CANCELLED",
  "UPSTREAM_UNAVAILABLE",
  "UPSTREAM_TIMEOUT",
  "UPSTREAM_INVALID",
  "UPSTREAM_BUSY",
]);

/**
 * The HTTP status that carries an error raised while a request with an id is served.
 * In a session an unknown method is an answer too: there, 404 would tell the client that its session is gone.
 */
export function mcpStatus(error: GatewayError, inSession: boolean): number {
  if (inBand.has(error.code) || (inSession && error.code === "METHOD_UNKNOWN")) return 200;
  return error.row.status;
}

/**
 * The JSON-RPC body of an error. `data` names our code and the request, so that an operator can find it in the log, and in
 * `retry_after` the seconds after which to try again, where they are known.
 */
export function mcpErrorBody(error: GatewayError, id: RequestId | null, requestId: string): JsonRpcResponse {
  const data = { code: error.code, request_id: requestId, ...error.data, ...retryAfter(error) } as Json;
  return { jsonrpc: "2.0", id, error: { code: error.row.jsonRpc, message: error.publicMessage, data } };
}

/** Renders an error that was raised before the id of the request was known. False: on a path that is not MCP. */
export function renderMcpError(ctx: Context, error: GatewayError, requestId: string): boolean {
  const { path } = ctx;
  if (path !== "/mcp" && path !== "/sse" && !path.startsWith("/mcp/session/")) return false;
  ctx.status = error.row.status;
  ctx.set(retryAfterHeader(error));
  ctx.type = "application/json";
  ctx.body = JSON.stringify(mcpErrorBody(error, null, requestId));
  return true;
}
