import type { Context } from "koa";
import type { Principal } from "../action/principal.ts";
import { type Access, checkAccess } from "../operation/operation.ts";
import type { AccessRule } from "./access.ts";

/** A method and path of a port. `GET` serves `HEAD` too. */
export interface Route {
  readonly method: "GET" | "POST" | "DELETE";
  readonly path: string;
  readonly access: Access;
}

/** The routes of a port by id. An id names its route in metrics and logs. */
export type PortRoutes = Readonly<Record<string, Route>>;

/** A route with the function that serves it. `requestId` names the request in the log and in errors. */
export interface MountedRoute extends Route {
  readonly id: string;
  readonly serve: (ctx: Context, requestId: string) => Promise<void> | void;
}

type Handler = (ctx: Context, caller: Principal, requestId: string) => Promise<void> | void;
type PublicHandler = (ctx: Context) => Promise<void> | void;

/** A handler for each route of a table, called once its caller is admitted. */
export type RouteHandlers<Table extends PortRoutes> = {
  readonly [Id in keyof Table]: Table[Id]["access"] extends "public" ? PublicHandler : Handler;
};

/** Pairs each route with its handler, behind the access check. */
export function mountRoutes<Table extends PortRoutes>(
  table: Table,
  handlers: RouteHandlers<Table>,
  accessRule: AccessRule,
): readonly MountedRoute[] {
  return Object.entries(table).map(([id, route]) => {
    const handle = handlers[id] as Handler;
    if (route.access === "public") return { id, ...route, serve: handlers[id] as PublicHandler };
    const serve: MountedRoute["serve"] = (ctx, requestId) => {
      const caller = accessRule.identify(route.access, ctx.req.rawHeaders);
      checkAccess(caller, route.access);
      return handle(ctx, caller, requestId);
    };
    return { id, ...route, serve };
  });
}
