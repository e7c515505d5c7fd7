import { approvalScopes, approvalStates, expiryReasons } from "../action/approval.ts";
import { capabilities, protocols } from "../action/envelope.ts";
import type { ErrorCode } from "../action/error.ts";
import type { JsonObject } from "../action/json.ts";
import { roles } from "../action/role.ts";
import { type AdminHandlers, type Operations, smallBody } from "../operation/operation.ts";
import { type Approving, approvalId, approvalPaging, choice } from "../operation/request.ts";
import {
  answers,
  anyObject,
  anyText,
  closed,
  count,
  flag,
  list,
  nullable,
  object,
  oneOf,
  page,
  points,
  ref,
  text,
  texts,
  time,
} from "../operation/shape.ts";
import { listBreakGlass, listLive, listPast } from "./history.ts";
import type { Yes } from "./review.ts";
import { type ApprovalParts, viewApproval } from "./view.ts";

type ApprovalRouteId =
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

const endorsement = object(
  { reviewer: anyText, key_id: anyText, at: time, scope: oneOf(approvalScopes), comment: anyText },
  ["comment"],
);

const breakGlass = object(
  { by: anyText, reason: anyText, at: time, post_mortem: object({ by: anyText, text: anyText, at: time }) },
  ["post_mortem"],
);

const action = object({
  id: anyText,
  capability: oneOf(capabilities),
  protocol: oneOf(protocols),
  target: anyText,
  task: nullable(anyText),
  tool: anyText,
});

const approval = object(
  {
    id: anyText,
    tenant: anyText,
    state: oneOf(approvalStates),
    scope: oneOf(approvalScopes),
    fingerprint: anyText,
    task_fingerprint: anyText,
    principal: object({ id: anyText, key_id: anyText, role: oneOf(roles) }),
    session: object({ id: anyText, transport: oneOf(["http", "sse"]) }),
    action,
    evaluation: object({ id: anyText, by_default: flag, risk: points, rules: texts }),
    tainted: texts,
    bound: object({ tool_definition: nullable(anyText), policies: texts }),
    required: count,
    endorsements: list(endorsement),
    held_seq: count,
    requested_at: time,
    expires_at: time,
    reviewed_at: time,
    reviewer: anyText,
    comment: anyText,
    consumed_at: time,
    consumed_seq: count,
    reason: oneOf(expiryReasons),
    break_glass: breakGlass,
  },
  ["tainted", "reviewed_at", "reviewer", "comment", "consumed_at", "consumed_seq", "reason", "break_glass"],
  { description: "A single-use permission. It holds no argument of the action." },
);

const change = object({ pointer: anyText, kind: oneOf(["added", "removed", "changed"]), before: {}, after: {} }, [
  "before",
  "after",
]);

const recentAction = object({
  time,
  id: anyText,
  capability: anyText,
  tool: anyText,
  target: anyText,
  decision: nullable(ref("Decision")),
  rules: texts,
  approval: nullable(object({ id: anyText, state: anyText })),
  effect: ref("Effect"),
});

const held = object({
  action: { ...anyObject, description: "the action whole, as policy saw it" },
  rules: list(object({ rule: anyText, message: anyText, severity: anyText })),
});

const approvalView = object({
  approval: ref("Approval"),
  held: nullable(held),
  withheld: nullable(
    oneOf(["role", "over", "incomplete"], {
      description:
        "why the action is not shown: the caller may not review, nothing is left to decide, or it is not kept whole",
    }),
  ),
  changes: nullable(object({ since: anyText, items: list(change), omitted: count })),
  recent: list(recentAction),
  session: nullable(ref("EvidenceSession")),
  risk: points,
});

/** What the answers about approvals are made of. */
export const approvalSchemas: Readonly<Record<string, JsonObject>> = { Approval: approval, ApprovalView: approvalView };

/** Handlers of review on the admin port. Every answer is the caller's tenant only; who reviews is who holds the key. */
export function approvalHandlers(parts: ApprovalParts): AdminHandlers<ApprovalRouteId> {
  const { book, review } = parts.approvals;
  return {
    "admin.approvals": (ctx, { tenant }, { query }) => {
      ctx.body = listLive(book, tenant, query.state, query);
    },
    "admin.approval_history": async (ctx, { tenant }, { query }) => {
      ctx.body = await listPast(book, tenant, query.state, query);
    },
    "admin.approval": async (ctx, caller, { id }) => {
      ctx.body = await viewApproval(parts, caller, id);
    },
    "admin.approve": async (ctx, caller, { id, body }) => {
      ctx.body = { approval: await review.approve(id, caller, yesOf(body)) };
    },
    "admin.deny": async (ctx, caller, { id, body }) => {
      ctx.body = { approval: await review.deny(id, caller, body.comment) };
    },
    "admin.break_glass": async (ctx, { tenant }) => {
      ctx.body = { items: await listBreakGlass(book, tenant), next: null };
    },
    "admin.break_glass_close": async (ctx, caller, { id, body }) => {
      ctx.body = { approval: await review.account(id, caller, body.post_mortem) };
    },
  };
}

function yesOf({ scope = "exact", comment, break_glass: breakGlass }: Approving): Yes {
  return {
    scope,
    ...(comment === undefined ? {} : { comment }),
    ...(breakGlass === undefined ? {} : { breakGlass }),
  };
}
