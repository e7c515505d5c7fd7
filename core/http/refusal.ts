import type { FormerApproval } from "../action/approval.ts";
import { type ErrorCode, GatewayError } from "../action/error.ts";
import type { Evaluation } from "../action/evaluation.ts";
import type { JsonObject } from "../action/json.ts";
import type { ReviewState } from "../road/authorize.ts";
import type { RunResult } from "../road/run.ts";

/** The member under which a refusal tells a machine what it tells the model in words. */
export const refusalMetaKey = "io.agent-governance-gateway/decision";

/** How an action ended whose answer the client does not get. */
export type Refusal = Exclude<RunResult<unknown>, { readonly kind: "answered" }>;

/** A refusal as the error that says it: POLICY_BLOCKED, REVIEW_REQUIRED, APPROVAL_DENIED or APPROVAL_QUEUE_FULL. */
export function refusalError(refusal: Refusal): GatewayError {
  return new GatewayError(refusalCode(refusal), refusalDetail(refusal), { data: refusalMeta(refusal) });
}

/** What a refusal tells machines. */
export function refusalMeta(refusal: Refusal): JsonObject {
  return { [refusalMetaKey]: refusalData(refusal) };
}

/** What a refusal says of why, and of what was done. */
export function refusalDetail(refusal: Refusal): string {
  const { evaluation } = refusal;
  const done = refusal.kind === "withheld" ? "The action ran, but its answer is withheld" : "Nothing was executed";
  const waiting = refusal.kind === "refused" && refusal.review !== null ? ` ${waitingText(refusal.review)}` : "";
  return `${reasonOf(evaluation)}. ${done}.${waiting} Decision ${evaluation.id}.`;
}

/** Why an evaluation did not allow: the first finding that determined it. */
export function reasonOf(evaluation: Evaluation): string {
  const [first] = evaluation.determining;
  if (first !== undefined) return `${withoutEnd(first.message)} (rule ${first.rule})`;
  if (evaluation.byDefault) return "no rule allows it";
  return "policy could not be evaluated";
}

/** Without the dots and blanks at its end. A pattern for these would begin anew at each of a message full of them. */
function withoutEnd(message: string): string {
  let end = message.length;
  while (end > 0 && /[.\s]/.test(message.charAt(end - 1))) end--;
  return message.slice(0, end);
}

function refusalCode(refusal: Refusal): ErrorCode {
  if (refusal.kind === "withheld" || refusal.evaluation.decision !== "review") return "POLICY_BLOCKED";
  if (refusal.review?.kind === "denied") return "APPROVAL_DENIED";
  return refusal.review?.kind === "full" ? "APPROVAL_QUEUE_FULL" : "REVIEW_REQUIRED";
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

/** What a held call is told of its approval, in words. */
function waitingText(waiting: ReviewState): string {
  if (waiting.kind === "full") return "The review queue is full, so nobody was asked: try again later.";
  const { id, state, comment, expires_at: until, required, endorsements } = waiting.approval;
  if (waiting.kind === "denied") {
    const said = comment === undefined ? "" : `: "${comment}"`;
    return `A reviewer denied approval ${id}${said}. Do not repeat this call.`;
  }
  if (state === "approved") return `Approval ${id} is given: repeat exactly the same call before ${until}.`;
  if (state !== "pending") return `${formerText(waiting.approval)} Repeat the call to have it reviewed anew.`;
  const missing = required - endorsements.length;
  const who = missing === 1 ? "Ask an operator to approve it" : `Ask ${missing} operators to approve it`;
  const former = waiting.former === undefined ? "" : `${formerText(waiting.former)} `;
  return `${former}Approval ${id} is pending until ${until}. ${who}, then repeat exactly the same call.`;
}

/** The same for machines. */
function waitingData(waiting: ReviewState): JsonObject {
  if (waiting.kind === "full") return { approval: null };
  const { id, state, expires_at: until, required, endorsements } = waiting.approval;
  const approval = { id, state, expires_at: until, required, endorsed: endorsements.length };
  if (waiting.kind === "denied" || waiting.former === undefined) return { approval };
  const { former } = waiting;
  return { approval, former_approval: { id: former.id, state: former.state, reason: former.reason ?? null } };
}

function formerText({ id, state, reason }: Pick<FormerApproval, "id" | "state" | "reason">): string {
  if (state === "consumed") return `Approval ${id} was good for one use and is used up.`;
  return `Approval ${id} holds no more (${reason ?? state}).`;
}
