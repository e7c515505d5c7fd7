import type { Context } from "koa";
import type { Principal } from "../../kernel/principal.ts";
import type { AdminRouteId, PublicRouteId } from "../route.ts";
import type { AskedBy } from "./asked.ts";

/** What an operation does, once its caller may have it and what it asks for fits. */
export type AdminHandler<Id extends AdminRouteId> = (
  ctx: Context,
  caller: Principal,
  asked: AskedBy<Id>,
) => Promise<void> | void;

/** The handlers of operations; the compiler asks for each. */
export type AdminHandlers<Id extends AdminRouteId = Exclude<AdminRouteId, PublicRouteId>> = {
  readonly [id in Id]: AdminHandler<id>;
};
