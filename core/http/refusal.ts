import type { FormerApproval, QueueLimit } from "../action/approval.ts";
import { type ErrorCode, GatewayError } from "../action/error.ts";
import type { Evaluation } from "../action/evaluation.ts";
import type { JsonObject } from "../action/json.ts";
import type { ReviewState } from "../road/authorize.ts";
import type { RunResult } from "../road/run.ts";

/** The `_meta` member with the machine-readable form of a refusal. */
export const refusalMetaKey = "io.agent-governance-gateway/decision";

/** Seconds after which to try again, where an error knows them: a member of the data of an error. */
export function retryAfter({ data }: GatewayError): { readonly retry_after?: number } {
  const seconds = data?.retry_after_s;
  return typeof seconds === "number" ? { retry_after: seconds } : {};
}

/** The same as the header of a response. */
export function retryAfterHeader(error: GatewayError): Readonly<Record<string, string>> {
  const { retry_after: seconds } = retryAfter(error);
  return seconds === undefined ? {} : { "retry-after": String(seconds) };
}

/** The result of an action whose output the client does not get. */
export type Refusal = Exclude<RunResult<unknown>, { readonly kind: "answered" }>;

/** The error of a refusal: POLICY_BLOCKED, REVIEW_REQUIRED, APPROVAL_DENIED or APPROVAL_QUEUE_FULL. */
export function refusalError(refusal: Refusal): GatewayError {
  return new GatewayError(refusalCode(refusal), refusalDetail(refusal), { data: refusalMeta(refusal) });
}

/** The machine-readable form of a refusal. */
export function refusalMeta(refusal: Refusal): JsonObject {
  return { [refusalMetaKey]: refusalData(refusal) };
}

/** The reason of a refusal in words, and whether the action ran. */
export function refusalDetail(refusal: Refusal): string {
  const { evaluation } = refusal;
  const done = refusal.kind === "withheld" ? "The action ran, but its answer is withheld" : "Nothing was executed";
  const waiting = refusal.kind === "refused" && refusal.review !== null ? ` ${reviewText(refusal.review)}` : "";
  return `${decisiveReason(evaluation)}. ${done}.${waiting} Decision ${evaluation.id}.`;
}

/** The reason why an evaluation did not allow: the first finding that determined it. */
export function decisiveReason(evaluation: Evaluation): string {
  const [first] = evaluation.determining;
  if (first !== undefined) return `${trimEnd(first.message)} (rule ${first.rule})`;
  if (evaluation.byDefault) return "no rule allows it";
  return "policy could not be evaluated";
}

/** Removes dots and blanks at the end. A loop, because a pattern would be quadratic in a message full of them. */
function trimEnd(message: string): string {
  let end = message.length;
  while (end > 0 && /[.\s]/.test(message.charAt(end - 1))) end--;
  return message.slice(0, end);
}

function refusalCode(refusal: Refusal): ErrorCode {
  if (refusal.kind === "withheld" || refusal.evaluation.decision !== "review") return "POLICY_BLOCKED";
  if (refusal.review?.kind === "denied") return "APPROVAL_DENIED";
  return refusal.review?.kind === "full" ? "APPROVAL_QUEUE_FULL" : "REVIEW_REQUIRED";
}

/** The members of the machine-readable form. */
export function refusalData(refusal: Refusal): JsonObject {
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
  if (refusal.kind === "refused") return refusal.review === null ? {} : reviewData(refusal.review);
  return refusal.approvalId === undefined ? {} : { approval: { id: refusal.approvalId, state: "consumed" } };
}

/** The state of the approval, and the next step, in words for the model. */
export function reviewText(review: ReviewState): string {
  if (review.kind === "full") return fullText(review.limit);
  const { id, state, comment, expires_at: until, required, endorsements } = review.approval;
  if (review.kind === "denied") {
    const quoted = comment === undefined ? "" : `: "${comment}"`;
    return `A reviewer denied approval ${id}${quoted}. Do not repeat this call.`;
  }
  if (state === "approved") return `Approval ${id} is given: repeat exactly the same call before ${until}.`;
  if (state !== "pending") return `${formerText(review.approval)} Repeat the call to have it reviewed anew.`;
  const missing = required - endorsements.length;
  const who = missing === 1 ? "Ask an operator to approve it" : `Ask ${missing} operators to approve it`;
  const former = review.former === undefined ? "" : `${formerText(review.former)} `;
  return `${former}Approval ${id} is pending until ${until}. ${who}, then repeat exactly the same call.`;
}

function fullText({ scope, unit, max, retryS }: QueueLimit): string {
  const limit = `at most ${max} ${unit === "bytes" ? "bytes of held actions" : unit}`;
  const whose = scope === "key" ? "with one key" : "of one tenant";
  const next =
    retryS === null ? "this action alone is larger" : `try again once a reviewer has decided, or in ${retryS} s`;
  return `The review queue is full (${limit} ${whose}), so nobody was asked: ${next}.`;
}

/** The state of the approval, machine-readable. */
function reviewData(review: ReviewState): JsonObject {
  if (review.kind === "full") {
    const { scope, unit, max, retryS } = review.limit;
    return { approval: null, limit: { reason: scope, unit, max }, retry_after_s: retryS };
  }
  const { id, state, expires_at: until, required, endorsements } = review.approval;
  const approval = { id, state, expires_at: until, required, endorsed: endorsements.length };
  if (review.kind === "denied" || review.former === undefined) return { approval };
  const { former } = review;
  return { approval, former_approval: { id: former.id, state: former.state, reason: former.reason ?? null } };
}

function formerText({ id, state, reason }: Pick<FormerApproval, "id" | "state" | "reason">): string {
  if (state === "consumed") return `Approval ${id} was good for one use and is used up.`;
  return `Approval ${id} is no longer valid (${reason ?? state}).`;
}
