import type { Context } from "koa";
import { GatewayError } from "../kernel/error.ts";
import type { SessionDirectory } from "../session/session-directory.ts";
import { type SessionSort, sessionSorts } from "../session/session-ranking.ts";
import type { SessionWatch } from "../session/session-watch.ts";
import type { Handlers } from "./app.ts";
import { readPage } from "./page.ts";
import { readTexts } from "./text-body.ts";

export interface SessionAdminParts {
  readonly sessionDirectory: SessionDirectory;
  readonly sessionWatch: SessionWatch;
}

const text = { least: 1, most: 1_024 };

/** Handlers that tell how sessions of the caller's tenant stand, and take risk and taints from one. */
export function sessionAdminHandlers({
  sessionDirectory: directory,
  sessionWatch: watch,
}: SessionAdminParts): Pick<Handlers, "admin.session_list" | "admin.session_state" | "admin.session_reset"> {
  return {
    "admin.session_list": async (ctx, { tenant }) => {
      const { limit, cursor } = readPage(ctx, ["sort"]);
      ctx.body = await directory.list(tenant, readSort(ctx), limit, cursor);
    },
    "admin.session_state": async (ctx, { tenant }) => {
      ctx.body = directory.show(tenant, ctx.params.id as string);
    },
    "admin.session_reset": async (ctx, { tenant, id }) => {
      const session = ctx.params.id as string;
      directory.checkKnown(tenant, session);
      const { reason } = await readTexts(ctx.req, { reason: text });
      if (reason === undefined) throw new GatewayError("INVALID_PARAMS", "expected `reason`: why it is trusted again");
      await watch.reset(tenant, session, id, reason);
      ctx.body = { session, state: "reset" };
    },
  };
}

function readSort({ query }: Context): SessionSort {
  const sort = sessionSorts.find((known) => known === (query.sort ?? "risk"));
  if (sort === undefined) throw new GatewayError("INVALID_PARAMS", "expected `sort` to be `risk` or `last`");
  return sort;
}
