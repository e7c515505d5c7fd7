import { approvalScopes } from "../../kernel/approval.ts";
import type { ErrorCode } from "../../kernel/error.ts";
import type { JsonObject } from "../../kernel/json.ts";
import { type Operations, smallBody } from "./operation.ts";
import { approvalId, approvalPaging, choice } from "./parameter.ts";
import { answers, closed, list, object, oneOf, page, ref, text } from "./shape.ts";

export type ApprovalRouteId =
  | "admin.approvals"
  | "admin.approval_history"
  | "admin.approval"
  | "admin.approve"
  | "admin.deny"
  | "admin.break_glass"
  | "admin.break_glass_close";

/** So much of a text that is not blank at its ends; every part of it is read once. */
function account(least: number, most: number, description: string): JsonObject {
  return { type: "string", maxLength: most, pattern: `^\\s*\\S[^]{${least - 2},}\\S\\s*$`, description };
}

const comment = text(0, 1_000, "a text of at most 1000 characters");
const ignored: JsonObject = { description: "without effect: who reviews is who holds the key" };
const params = { id: approvalId };
const reviewed = answers("The approval, as it is now.", object({ approval: ref("Approval") }));
const inReview: readonly ErrorCode[] = [
  "APPROVAL_STATE",
  "APPROVAL_ENDORSED",
  "APPROVAL_INCOMPLETE",
  "APPROVAL_SELF_REVIEW",
  "EVIDENCE_UNAVAILABLE",
];

/** The review of actions that wait for people. */
export const approvalOperations: Operations<ApprovalRouteId> = {
  "admin.approvals": {
    name: "listApprovals",
    subject: "approvals",
    summary: "The approvals that wait for a review, or for their use, in the order in which they were asked for",
    query: { state: choice(["pending", "approved"], "pending"), ...approvalPaging },
    answer: answers("A page of approvals.", page(ref("Approval"))),
    refusals: [],
  },
  "admin.approval_history": {
    name: "listPastApprovals",
    subject: "approvals",
    summary: "The approvals that are over, the latest asked for first",
    query: { state: choice(["denied", "expired", "consumed"]), ...approvalPaging },
    answer: answers("A page of approvals.", page(ref("Approval"))),
    refusals: [],
  },
  "admin.approval": {
    name: "getApproval",
    subject: "approvals",
    summary: "One approval, with what a reviewer needs to decide; that the action was looked at goes on record",
    params,
    answer: answers("The approval and what is known about it.", ref("ApprovalView")),
    refusals: ["EVIDENCE_UNAVAILABLE"],
  },
  "admin.approve": {
    name: "approve",
    subject: "approvals",
    summary: "Says yes; who says it is who holds the key",
    params,
    body: {
      schema: closed(
        {
          comment,
          scope: oneOf(approvalScopes, {
            description: "`exact`: this very action; `task`: the same with other argument values",
          }),
          break_glass: account(10, 1_000, "10 to 1000 characters: why this cannot wait for another reviewer"),
          reviewer: ignored,
        },
        ["comment", "scope", "break_glass", "reviewer"],
      ),
      example: { comment: "as agreed in the change window", scope: "exact" },
      required: false,
      limits: smallBody,
    },
    answer: reviewed,
    refusals: [...inReview, "BREAK_GLASS_FORBIDDEN"],
  },
  "admin.deny": {
    name: "deny",
    subject: "approvals",
    summary: "Says no",
    params,
    body: {
      schema: closed({ comment, reviewer: ignored }, ["comment", "reviewer"]),
      example: { comment: "not on a Friday" },
      required: false,
      limits: smallBody,
    },
    answer: reviewed,
    refusals: inReview,
  },
  "admin.break_glass": {
    name: "listBreakGlass",
    subject: "approvals",
    summary: "The uses of break-glass that nobody has accounted for yet",
    answer: answers(
      "All of them; there are never many.",
      object({ items: list(ref("Approval")), next: { type: "null" } }),
    ),
    refusals: [],
  },
  "admin.break_glass_close": {
    name: "closeBreakGlass",
    subject: "approvals",
    summary: "Says what happened, and why break-glass was used",
    params,
    body: {
      schema: closed({ post_mortem: account(20, 20_000, "20 to 20000 characters: what happened, and why") }),
      example: { post_mortem: "The pager was down; two people watched the call." },
      required: true,
      limits: smallBody,
    },
    answer: reviewed,
    refusals: ["APPROVAL_STATE", "EVIDENCE_UNAVAILABLE"],
  },
};
