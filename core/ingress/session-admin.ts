import type { SessionDirectory } from "../session/session-directory.ts";
import type { SessionWatch } from "../session/session-watch.ts";
import type { AdminHandlers } from "./api/handler.ts";

export interface SessionAdminParts {
  readonly sessionDirectory: SessionDirectory;
  readonly sessionWatch: SessionWatch;
}

/** Handlers that tell how sessions of the caller's tenant stand, and take risk and taints from one. */
export function sessionAdminHandlers({
  sessionDirectory: directory,
  sessionWatch: watch,
}: SessionAdminParts): AdminHandlers<"admin.session_list" | "admin.session_state" | "admin.session_reset"> {
  return {
    "admin.session_list": async (ctx, { tenant }, { query }) => {
      ctx.body = await directory.list(tenant, query.sort, query.limit, query.cursor);
    },
    "admin.session_state": async (ctx, { tenant }, { id }) => {
      ctx.body = directory.show(tenant, id);
    },
    "admin.session_reset": async (ctx, { tenant, id: by }, { id: session, body }) => {
      directory.checkKnown(tenant, session);
      await watch.reset(tenant, session, by, body.reason);
      ctx.body = { session, state: "reset" };
    },
  };
}
