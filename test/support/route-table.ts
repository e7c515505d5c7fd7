import { adminOperations } from "../../core/admin/api/table.ts";
import { accessRoutes } from "../../core/admin/console/access/route.ts";
import { consoleRoutes } from "../../core/admin/console/page.ts";
import { gatewayRoutes } from "../../core/gateway/route.ts";
import type { Route as PortRoute } from "../../core/http/app.ts";
import type { Port } from "../../core/observe/metrics.ts";
import type { Access, AdminOperation } from "../../core/operation/operation.ts";

/** A route with its port. */
export interface Route extends Pick<PortRoute, "method" | "path"> {
  readonly port: Port;
  readonly access: Access;
}

export type AdminRouteId = (typeof adminOperations)[keyof typeof adminOperations]["id"];
export type RouteId =
  | keyof typeof gatewayRoutes
  | AdminRouteId
  | keyof typeof consoleRoutes
  | keyof typeof accessRoutes;

/** An operation of the admin port that needs a key. */
export type OperationId = Exclude<AdminRouteId, "admin.health">;

/** An operation with its `operationId`. */
export interface NamedOperation extends AdminOperation {
  readonly name: string;
}

/** The operations of the admin port by id. */
export const operations = Object.fromEntries(
  Object.entries<AdminOperation>(adminOperations).map(([name, operation]) => [operation.id, { name, ...operation }]),
) as unknown as Readonly<Record<AdminRouteId, NamedOperation>>;

/** Every route of the service by id; the operations of the admin port are on the metrics port, too: see `isForPeople`. */
export const routes = {
  ...ofPort("gateway", gatewayRoutes),
  ...ofPort("admin", operations),
  ...ofPort("metrics", { ...consoleRoutes, ...accessRoutes }),
} as Readonly<Record<RouteId, Route>>;

function ofPort(port: Port, table: Readonly<Record<string, Omit<Route, "port">>>): Readonly<Record<string, Route>> {
  return Object.fromEntries(
    Object.entries(table).map(([id, { method, path, access }]) => [id, { port, method, path, access }]),
  );
}

/** Whether the console serves a route of the admin port on the metrics port. */
export function isForPeople({ port, path }: Route): boolean {
  return port === "admin" && path.startsWith("/admin/v1/");
}

/** Whether a route is an operation that needs a key. */
export function isOperation(id: RouteId): id is OperationId {
  return id in operations && routes[id].access !== "public";
}
