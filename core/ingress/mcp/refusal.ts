import { type ErrorCode, GatewayError } from "../../kernel/error.ts";
import type { Evaluation } from "../../kernel/evaluation.ts";
import type { JsonObject } from "../../kernel/json.ts";
import type { JsonRpcResponse, RequestId } from "../../kernel/json-rpc.ts";
import type { McpEra } from "../../kernel/mcp.ts";
import type { Passage } from "../../pipeline/road.ts";
import { usedUp } from "../../pipeline/road.ts";
import { waitingData, waitingText } from "./waiting.ts";

/** The `_meta` member under which a refusal tells a machine what it tells the model in words. */
export const refusalMetaKey = "io.agent-governance-gateway/decision";

export type Refusal = Exclude<Passage<unknown>, { readonly kind: "answered" }>;

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
  if (passage.kind !== "answered") throw refusedRequest(passage);
  const { reply, approvalId } = passage;
  if (!(reply instanceof GatewayError)) return reply;
  throw approvalId === undefined ? reply : usedUp(reply, approvalId);
}

/** What a refusal tells machines. */
export function refusalMeta(refusal: Refusal): JsonObject {
  return { [refusalMetaKey]: refusalData(refusal) };
}

function refusedRequest(refusal: Refusal): GatewayError {
  return new GatewayError(refusalCode(refusal), refusalDetail(refusal), { data: refusalMeta(refusal) });
}

function refusalCode(refusal: Refusal): ErrorCode {
  if (refusal.kind === "withheld" || refusal.evaluation.decision !== "review") return "POLICY_BLOCKED";
  if (refusal.review?.kind === "denied") return "APPROVAL_DENIED";
  return refusal.review?.kind === "full" ? "APPROVAL_QUEUE_FULL" : "REVIEW_REQUIRED";
}

function refusalText(refusal: Refusal): string {
  if (refusal.kind === "withheld") {
    const { approvalId, evaluation } = refusal;
    const lost = approvalId === undefined ? "" : ` Approval ${approvalId} is used up.`;
    return `The action ran, but policy withheld its answer: ${reason(evaluation)}.${lost} Decision ${evaluation.id}.`;
  }
  const verb = refusal.evaluation.decision === "review" ? "Held for review" : "Blocked by policy";
  return `${verb}: ${refusalDetail(refusal)}`;
}

function refusalDetail(refusal: Refusal): string {
  const { evaluation } = refusal;
  const done = refusal.kind === "withheld" ? "The action ran, but its answer is withheld" : "Nothing was executed";
  const waiting = refusal.kind === "refused" && refusal.review !== null ? ` ${waitingText(refusal.review)}` : "";
  return `${reason(evaluation)}. ${done}.${waiting} Decision ${evaluation.id}.`;
}

function reason(evaluation: Evaluation): string {
  const [first] = evaluation.determining;
  if (first !== undefined) return `${first.message.replace(/[.\s]+$/, "")} (rule ${first.rule})`;
  if (evaluation.byDefault) return "no rule allows it";
  return "policy could not be evaluated";
}

function refusalData(refusal: Refusal): JsonObject {
  const { evaluation } = refusal;
  return {
    code: refusalCode(refusal),
    decision: evaluation.decision,
    decision_id: evaluation.id,
    action_id: evaluation.actionId,
    executed: refusal.kind === "withheld",
    rules: evaluation.determining.map(({ rule, message, severity }) => ({ rule, message, severity })),
    ...approvalData(refusal),
  };
}

function approvalData(refusal: Refusal): JsonObject {
  if (refusal.kind === "refused") return refusal.review === null ? {} : waitingData(refusal.review);
  return refusal.approvalId === undefined ? {} : { approval: { id: refusal.approvalId, state: "consumed" } };
}
