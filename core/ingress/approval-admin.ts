import type { Yes } from "../approval/answer.ts";
import { listBreakGlass, listLive, listPast } from "../approval/history.ts";
import type { ApprovalRouteId } from "./api/approval.ts";
import type { Approving } from "./api/asked.ts";
import type { AdminHandlers } from "./api/handler.ts";
import { type ApprovalParts, viewApproval } from "./approval-view.ts";

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
