import type { TObject, TString, TUnknown } from "@sinclair/typebox";
import { approvalScopes, approvalStates, expiryReasons } from "../action/approval.ts";
import { capabilities } from "../action/capability.ts";
import { protocols } from "../action/envelope.ts";
import type { ErrorCode } from "../action/error.ts";
import { roles } from "../action/role.ts";
import { Type } from "../config/type.ts";
import { type AdminHandlers, type AdminOperations, smallBody } from "../operation/operation.ts";
import {
  anyObject,
  anyText,
  approvalPaging,
  approvalParameter,
  boundedText,
  closed,
  enumOf,
  jsonResponse,
  nullable,
  optionalQueryChoice,
  page,
  points,
  queryChoice,
  ref,
  time,
  whole,
  wholeNumber,
} from "../operation/shape.ts";
import { listBreakGlass, listEnded, listLive } from "./history.ts";
import type { ApproveOptions } from "./review.ts";
import { type ApprovalViewSources, viewApproval } from "./view.ts";

/** Text with `minimum` to `maximum` characters between its blank ends. Linear: every part is read once. */
function statement(minimum: number, maximum: number, description: string): TString {
  return Type.String({ maxLength: maximum, pattern: `^\\s*\\S[^]{${minimum - 2},}\\S\\s*$`, description });
}

const comment = Type.Optional(boundedText(0, 1_000, "a text of at most 1000 characters"));
const ignored: TUnknown = Type.Unknown({ description: "ignored: the reviewer is the holder of the key" });
const reviewer = Type.Optional(ignored);
const params = { id: approvalParameter };
const reviewed = jsonResponse("The approval after the review.", Type.Object({ approval: ref("Approval") }));
const reviewErrors: readonly ErrorCode[] = [
  "APPROVAL_STATE",
  "APPROVAL_ENDORSED",
  "APPROVAL_INCOMPLETE",
  "APPROVAL_SELF_REVIEW",
  "EVIDENCE_UNAVAILABLE",
];

/** Review of held actions. */
export const approvalOperations = {
  listApprovals: {
    id: "admin.approvals",
    method: "GET",
    path: "/admin/v1/approvals",
    access: "approval.read",
    tag: "approvals",
    summary: "List approvals that are pending, or approved and not yet used, oldest first",
    query: closed({ state: queryChoice(["pending", "approved"], "pending"), ...approvalPaging }),
    response: jsonResponse("A page of approvals.", page(ref("Approval"))),
    errors: [],
  },
  listPastApprovals: {
    id: "admin.approval_history",
    method: "GET",
    path: "/admin/v1/approvals/history",
    access: "approval.read",
    tag: "approvals",
    summary: "List denied, expired and consumed approvals, newest first",
    query: closed({ state: optionalQueryChoice(["denied", "expired", "consumed"]), ...approvalPaging }),
    response: jsonResponse("A page of approvals.", page(ref("Approval"))),
    errors: [],
  },
  getApproval: {
    id: "admin.approval",
    method: "GET",
    path: "/admin/v1/approvals/:id",
    access: "approval.read",
    tag: "approvals",
    summary: "Get one approval with what a reviewer needs to decide; reading the held action is recorded",
    params,
    response: jsonResponse("The approval and its context.", ref("ApprovalView")),
    errors: ["EVIDENCE_UNAVAILABLE"],
  },
  approve: {
    id: "admin.approve",
    method: "POST",
    path: "/admin/v1/approvals/:id/approve",
    access: "approval.review",
    tag: "approvals",
    summary: "Approve a pending request; the reviewer is the holder of the key",
    params,
    body: {
      schema: closed({
        comment,
        scope: Type.Optional(
          enumOf(approvalScopes, {
            description: "`exact`: this very action; `task`: the same with other argument values",
          }),
        ),
        break_glass: Type.Optional(
          statement(10, 1_000, "10 to 1000 characters: why this cannot wait for another reviewer"),
        ),
        reviewer,
      }),
      example: { comment: "as agreed in the change window", scope: "exact" },
      required: false,
      limits: smallBody,
    },
    response: reviewed,
    errors: [...reviewErrors, "BREAK_GLASS_FORBIDDEN"],
  },
  deny: {
    id: "admin.deny",
    method: "POST",
    path: "/admin/v1/approvals/:id/deny",
    access: "approval.review",
    tag: "approvals",
    summary: "Deny a pending request",
    params,
    body: {
      schema: closed({ comment, reviewer }),
      example: { comment: "not on a Friday" },
      required: false,
      limits: smallBody,
    },
    response: reviewed,
    errors: reviewErrors,
  },
  listBreakGlass: {
    id: "admin.break_glass",
    method: "GET",
    path: "/admin/v1/break-glass",
    access: "approval.read",
    tag: "approvals",
    summary: "List break-glass uses without a post-mortem",
    response: jsonResponse("The whole list; it is short.", whole(ref("Approval"))),
    errors: [],
  },
  closeBreakGlass: {
    id: "admin.break_glass_close",
    method: "POST",
    path: "/admin/v1/break-glass/:id/close",
    access: "approval.break_glass",
    tag: "approvals",
    summary: "Close a break-glass use with a post-mortem",
    params,
    body: {
      schema: closed({ post_mortem: statement(20, 20_000, "20 to 20000 characters: what happened, and why") }),
      example: { post_mortem: "The pager was down; two people watched the call." },
      required: true,
      limits: smallBody,
    },
    response: reviewed,
    errors: ["APPROVAL_STATE", "EVIDENCE_UNAVAILABLE"],
  },
} as const satisfies AdminOperations;

const endorsement: TObject = Type.Object({
  reviewer: anyText,
  key_id: anyText,
  at: time,
  scope: enumOf(approvalScopes),
  comment: Type.Optional(anyText),
});

const breakGlass: TObject = Type.Object({
  by: anyText,
  reason: anyText,
  at: time,
  post_mortem: Type.Optional(Type.Object({ by: anyText, text: anyText, at: time })),
});

const action: TObject = Type.Object({
  id: anyText,
  capability: enumOf(capabilities),
  protocol: enumOf(protocols),
  target: anyText,
  task: nullable(anyText),
  tool: anyText,
});

const approval: TObject = Type.Object(
  {
    id: anyText,
    tenant: anyText,
    state: enumOf(approvalStates),
    scope: enumOf(approvalScopes),
    fingerprint: anyText,
    task_fingerprint: anyText,
    principal: Type.Object({ id: anyText, key_id: anyText, role: enumOf(roles) }),
    session: Type.Object({ id: anyText, transport: enumOf(["http", "sse"]) }),
    action,
    evaluation: Type.Object({ id: anyText, by_default: Type.Boolean(), risk: points, rules: Type.Array(anyText) }),
    tainted: Type.Optional(Type.Array(anyText)),
    bound: Type.Object({ tool_definition: nullable(anyText), policies: Type.Array(anyText) }),
    required: wholeNumber,
    endorsements: Type.Array(endorsement),
    held_seq: wholeNumber,
    requested_at: time,
    expires_at: time,
    reviewed_at: Type.Optional(time),
    reviewer: Type.Optional(anyText),
    comment: Type.Optional(anyText),
    consumed_at: Type.Optional(time),
    consumed_seq: Type.Optional(wholeNumber),
    reason: Type.Optional(enumOf(expiryReasons)),
    break_glass: Type.Optional(breakGlass),
  },
  { description: "A single-use permission. It contains no argument of the action." },
);

const change: TObject = Type.Object({
  pointer: anyText,
  kind: enumOf(["added", "removed", "changed"]),
  before: Type.Optional(Type.Unknown()),
  after: Type.Optional(Type.Unknown()),
});

const recentAction: TObject = Type.Object({
  time,
  id: anyText,
  capability: anyText,
  tool: anyText,
  target: anyText,
  decision: nullable(ref("Decision")),
  rules: Type.Array(anyText),
  approval: nullable(Type.Object({ id: anyText, state: anyText })),
  effect: ref("Effect"),
});

const held: TObject = Type.Object({
  action: { ...anyObject, description: "the whole action, as policy saw it" },
  does: { ...Type.Array(anyText), description: "what the action does, by its typed facts" },
  rules: Type.Array(Type.Object({ rule: anyText, message: anyText, severity: anyText })),
});

const approvalView: TObject = Type.Object({
  approval: ref("Approval"),
  held: nullable(held),
  withheld: nullable(
    enumOf(["role", "over", "incomplete"], {
      description:
        "why the action is not included: the caller may not review, the approval is final, or the action is not kept whole",
    }),
  ),
  changes: nullable(Type.Object({ since: anyText, items: Type.Array(change), omitted: wholeNumber })),
  recent: Type.Array(recentAction),
  session: nullable(ref("EvidenceSession")),
  risk: points,
});

/** Components of the document. */
export const approvalSchemas = { Approval: approval, ApprovalView: approvalView };

/** Handlers of review. Responses are of the caller's tenant only; the reviewer is the holder of the key. */
export function approvalHandlers(sources: ApprovalViewSources): AdminHandlers<typeof approvalOperations> {
  const { store, review } = sources.approvals;
  return {
    listApprovals: ({ tenant }, { query }) => listLive(store, tenant, query.state, query),
    listPastApprovals: ({ tenant }, { query }) => listEnded(store, tenant, query.state, query),
    getApproval: (caller, { id }) => viewApproval(sources, caller, id),
    approve: async (caller, { id, body: { scope = "exact", comment, break_glass: breakGlass } }) => {
      const options: ApproveOptions = {
        scope,
        ...(comment === undefined ? {} : { comment }),
        ...(breakGlass === undefined ? {} : { breakGlass }),
      };
      return { approval: await review.approve(id, caller, options) };
    },
    deny: async (caller, { id, body }) => ({ approval: await review.deny(id, caller, body.comment) }),
    listBreakGlass: async ({ tenant }) => ({ items: await listBreakGlass(store, tenant), next: null }),
    closeBreakGlass: async (caller, { id, body }) => ({
      approval: await review.closeBreakGlass(id, caller, body.post_mortem),
    }),
  };
}
