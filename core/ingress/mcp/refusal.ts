import { GatewayError } from "../../kernel/error.ts";
import type { JsonObject } from "../../kernel/json.ts";
import type { JsonRpcResponse, RequestId } from "../../kernel/json-rpc.ts";
import type { McpEra } from "../../kernel/mcp.ts";
import type { Passage } from "../../pipeline/road.ts";
import { usedUp } from "../../pipeline/road.ts";
import { type Refusal, reasonOf, refusalDetail, refusalError, refusalMeta } from "../refusal.ts";

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

/**
 * The reply of a passage. Throws POLICY_BLOCKED, REVIEW_REQUIRED, APPROVAL_DENIED or APPROVAL_QUEUE_FULL where it was
 * refused: a request that is not a tool call has no result shape for it. An error that used up an approval says so.
 */
export function replyOf<Reply>(passage: Passage<Reply | GatewayError>): Reply {
  if (passage.kind !== "answered") throw refusalError(passage);
  const { reply, approvalId } = passage;
  if (!(reply instanceof GatewayError)) return reply;
  throw approvalId === undefined ? reply : usedUp(reply, approvalId);
}

function refusalText(refusal: Refusal): string {
  if (refusal.kind === "withheld") {
    const { approvalId, evaluation } = refusal;
    const lost = approvalId === undefined ? "" : ` Approval ${approvalId} is used up.`;
    return `The action ran, but policy withheld its answer: ${reasonOf(evaluation)}.${lost} Decision ${evaluation.id}.`;
  }
  const verb = refusal.evaluation.decision === "review" ? "Held for review" : "Blocked by policy";
  return `${verb}: ${refusalDetail(refusal)}`;
}
