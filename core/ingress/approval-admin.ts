import type { Context } from "koa";
import { listBreakGlass, listLive, listPast } from "../approval/history.ts";
import { type ApprovalScope, type ApprovalState, approvalScopes } from "../kernel/approval.ts";
import { asciiJson } from "../kernel/ascii-json.ts";
import { GatewayError } from "../kernel/error.ts";
import type { Principal } from "../kernel/principal.ts";
import type { Handlers } from "./app.ts";
import { type ApprovalParts, viewApproval } from "./approval-view.ts";
import { type Page, readPage } from "./page.ts";
import { readTexts } from "./text-body.ts";

type ApprovalRouteId =
  | "admin.approvals"
  | "admin.approval_history"
  | "admin.approval"
  | "admin.approve"
  | "admin.deny"
  | "admin.break_glass"
  | "admin.break_glass_close";

const liveStates = ["pending", "approved"] as const;
const pastStates = ["denied", "expired", "consumed"] as const;
const comment = { least: 0, most: 1_000 };
/** The specification lets a request say who reviews; it counts for nothing. */
const ignored = ["reviewer"];

/** Handlers of review on the admin port. Every answer is the caller's tenant only; who reviews is who holds the key. */
export function approvalHandlers(parts: ApprovalParts): Pick<Handlers, ApprovalRouteId> {
  const { book } = parts.approvals;
  return {
    "admin.approvals": (ctx, { tenant }) => {
      const page = readApprovalPage(ctx);
      answer(ctx, listLive(book, tenant, readState(ctx, liveStates) ?? "pending", page));
    },
    "admin.approval_history": async (ctx, { tenant }) => {
      const page = readApprovalPage(ctx);
      answer(ctx, await listPast(book, tenant, readState(ctx, pastStates), page));
    },
    "admin.approval": async (ctx, caller) => {
      answer(ctx, await viewApproval(parts, caller, idOf(ctx)));
    },
    "admin.approve": (ctx, caller) => approve(parts, ctx, caller),
    "admin.deny": (ctx, caller) => deny(parts, ctx, caller),
    "admin.break_glass": async (ctx, { tenant }) => {
      answer(ctx, { items: await listBreakGlass(book, tenant), next: null });
    },
    "admin.break_glass_close": (ctx, caller) => closeBreakGlass(parts, ctx, caller),
  };
}

async function approve({ approvals }: ApprovalParts, ctx: Context, caller: Principal): Promise<void> {
  const named = { comment, scope: { least: 0, most: 16 }, break_glass: { least: 10, most: 1_000 } };
  const { scope = "exact", break_glass: breakGlass, ...said } = await readTexts(ctx.req, named, ignored);
  const yes = { scope: checkScope(scope), ...said, ...(breakGlass === undefined ? {} : { breakGlass }) };
  answer(ctx, { approval: await approvals.review.approve(idOf(ctx), caller, yes) });
}

async function deny({ approvals }: ApprovalParts, ctx: Context, caller: Principal): Promise<void> {
  const said = await readTexts(ctx.req, { comment }, ignored);
  answer(ctx, { approval: await approvals.review.deny(idOf(ctx), caller, said.comment) });
}

async function closeBreakGlass({ approvals }: ApprovalParts, ctx: Context, caller: Principal): Promise<void> {
  const { post_mortem: text } = await readTexts(ctx.req, { post_mortem: { least: 20, most: 20_000 } });
  if (text === undefined) throw new GatewayError("INVALID_PARAMS", "expected `post_mortem`: what happened, and why");
  answer(ctx, { approval: await approvals.review.account(idOf(ctx), caller, text) });
}

/** Agents choose names: whoever looks at the answer with bare eyes must not be misled by them. */
function answer(ctx: Context, body: object): void {
  ctx.type = "application/json; charset=utf-8";
  ctx.body = asciiJson(body);
}

function idOf(ctx: Context): string {
  return ctx.params.id as string;
}

function readApprovalPage(ctx: Context): Page {
  const page = readPage(ctx, ["state"]);
  if (page.cursor === undefined || /^apr_[0-9a-f]{32}$/.test(page.cursor)) return page;
  throw new GatewayError("INVALID_PARAMS", "expected `cursor` to be the `next` of an earlier page");
}

function readState<State extends ApprovalState>(ctx: Context, states: readonly State[]): State | undefined {
  const { state } = ctx.query;
  if (state === undefined) return undefined;
  const known = states.find((each) => each === state);
  if (known !== undefined) return known;
  throw new GatewayError("INVALID_PARAMS", `expected \`state\` to be one of ${states.join(", ")}`);
}

function checkScope(scope: string): ApprovalScope {
  const known = approvalScopes.find((each) => each === scope);
  if (known !== undefined) return known;
  throw new GatewayError("INVALID_PARAMS", `expected \`scope\` to be one of ${approvalScopes.join(", ")}`);
}
