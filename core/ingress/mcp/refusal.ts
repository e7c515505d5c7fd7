import { GatewayError } from "../../kernel/error.ts";
import type { Evaluation } from "../../kernel/evaluation.ts";
import type { JsonObject } from "../../kernel/json.ts";
import type { JsonRpcResponse, RequestId } from "../../kernel/json-rpc.ts";
import type { McpEra } from "../../kernel/mcp.ts";
import type { Passage } from "../../pipeline/road.ts";

/** The `_meta` member under which a refusal tells a machine what it tells the model in words. */
export const refusalMetaKey = "io.agent-governance-gateway/decision";

export type RefusalKind = Exclude<Passage<unknown>["kind"], "answered">;

/**
 * A refused tool call as clients keep it intact: a tool result with `isError`, words for the model, data for machines.
 * Real clients lose or misread every other shape.
 */
export function refusedToolResult(
  id: RequestId,
  era: McpEra,
  kind: RefusalKind,
  evaluation: Evaluation,
): JsonRpcResponse {
  const result: JsonObject = {
    content: [{ type: "text", text: refusalText(kind, evaluation) }],
    isError: true,
    _meta: { [refusalMetaKey]: refusalData(kind, evaluation) },
    ...(era === "modern" ? { resultType: "complete" } : {}),
  };
  return { jsonrpc: "2.0", id, result };
}

/** The reply of a request that is not a tool call. Throws POLICY_BLOCKED or REVIEW_REQUIRED where policy refused it. */
export function replyOf<Reply>(passage: Passage<Reply>): Reply {
  if (passage.kind === "answered") return passage.answer.reply;
  throw refusedRequest(passage.kind, passage.evaluation);
}

/** There is no result shape for it, so it is an error. */
function refusedRequest(kind: RefusalKind, evaluation: Evaluation): GatewayError {
  const code = evaluation.decision === "review" && kind === "refused" ? "REVIEW_REQUIRED" : "POLICY_BLOCKED";
  const data = { [refusalMetaKey]: refusalData(kind, evaluation) };
  return new GatewayError(code, refusalDetail(kind, evaluation), { data });
}

function refusalText(kind: RefusalKind, evaluation: Evaluation): string {
  if (kind === "withheld") {
    return `The action ran, but policy withheld its answer: ${reason(evaluation)}. Decision ${evaluation.id}.`;
  }
  const verb = evaluation.decision === "review" ? "Held for review" : "Blocked by policy";
  return `${verb}: ${refusalDetail(kind, evaluation)}`;
}

function refusalDetail(kind: RefusalKind, evaluation: Evaluation): string {
  const done = kind === "withheld" ? "The action ran, but its answer is withheld" : "Nothing was executed";
  return `${reason(evaluation)}. ${done}. Decision ${evaluation.id}.`;
}

function reason(evaluation: Evaluation): string {
  const [first] = evaluation.determining;
  if (first !== undefined) return `${first.message.replace(/[.\s]+$/, "")} (rule ${first.rule})`;
  if (evaluation.byDefault) return "no rule allows it";
  return "policy could not be evaluated";
}

function refusalData(kind: RefusalKind, evaluation: Evaluation): JsonObject {
  return {
    decision: evaluation.decision,
    decision_id: evaluation.id,
    action_id: evaluation.actionId,
    executed: kind === "withheld",
    rules: evaluation.determining.map(({ rule, message, severity }) => ({ rule, message, severity })),
  };
}
