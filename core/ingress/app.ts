import Router from "@koa/router";
import Koa, { type Context, type Next } from "koa";
import { GatewayError } from "../kernel/error.ts";
import type { Principal } from "../kernel/principal.ts";
import type { Log } from "../observe/log.ts";
import type { Metrics, Port } from "../observe/metrics.ts";
import { type AccessRule, checkRole } from "./access.ts";
import { type AdminPort, isOperation } from "./admin-port.ts";
import type { AdminHandlers } from "./api/handler.ts";
import { discardBody } from "./discard.ts";
import { guard } from "./guard.ts";
import type { HostRule } from "./host-rule.ts";
import { answerMcpError, speaksMcp } from "./mcp/error.ts";
import { answerModelError, modelApiOf } from "./model/error.ts";
import { answerPrintably } from "./printable-json.ts";
import { answerProblem } from "./problem.ts";
import { type PublicRouteId, type Route, type RouteId, routes } from "./route.ts";

/** What a route does, once its caller is known. `requestId` names this request in the log and in errors. */
export type Handler = (ctx: Context, caller: Principal, requestId: string) => Promise<void> | void;
export type PublicHandler = (ctx: Context) => Promise<void> | void;

export interface AppParts {
  readonly hostRule: HostRule;
  readonly accessRule: AccessRule;
  readonly adminPort: AdminPort;
  readonly metrics: Metrics;
  readonly log: Log;
  readonly newId: () => string;
}

/** The handlers of every route of the table; the compiler asks for each. */
export type Handlers = AdminHandlers & {
  readonly [id in Exclude<RouteId, keyof AdminHandlers>]: id extends PublicRouteId ? PublicHandler : Handler;
};

/** The Koa application of one port: measure, guard, find the route, admit the caller, handle, answer errors. */
export function buildApp(port: Port, handlers: Handlers, parts: AppParts): Koa {
  const app = new Koa({ proxy: false });
  app.silent = true;
  app.on("error", (error: unknown) => parts.log.warn({ err: GatewayError.from(error).code }, "response broke off"));
  app.use((ctx, next) => measure(ctx, next, port, parts.metrics));
  // People read there, and programs of ours; what agents are told stays as short as it came.
  if (port !== "gateway") app.use(answerPrintably);
  app.use((ctx, next) => answerErrors(ctx, next, parts));
  app.use(guard(parts.hostRule));
  app.use(buildRouter(port, handlers, parts).routes());
  app.use(refuseUnrouted(port));
  return app;
}

function buildRouter(port: Port, handlers: Handlers, parts: AppParts): Router {
  const router = new Router({ strict: true, sensitive: true });
  for (const [id, route] of Object.entries(routes) as [RouteId, Route][]) {
    if (route.port !== port) continue;
    router.register(route.path, methodsOf(route.method), (ctx: Context) => {
      ctx.state.route = id;
      if (isOperation(id)) return parts.adminPort.serve(id, handlers, ctx);
      const caller = parts.accessRule.identify(route.access, ctx.req.rawHeaders);
      if (caller === null) return (handlers[id] as PublicHandler)(ctx);
      checkRole(caller, route.access);
      return (handlers[id] as Handler)(ctx, caller, ctx.state.requestId as string);
    });
  }
  return router;
}

function methodsOf(method: string): string[] {
  return method === "GET" ? ["GET", "HEAD"] : [method];
}

async function measure(ctx: Context, next: Next, port: Port, metrics: Metrics): Promise<void> {
  const start = performance.now();
  ctx.res.once("close", () => {
    const seconds = (performance.now() - start) / 1000;
    metrics.answered(port, (ctx.state.route as string | undefined) ?? "none", ctx.res.statusCode, seconds);
  });
  await next();
}

async function answerErrors(ctx: Context, next: Next, parts: AppParts): Promise<void> {
  const requestId = parts.newId();
  ctx.state.requestId = requestId;
  ctx.set({ "x-request-id": requestId, "x-content-type-options": "nosniff", "cache-control": "no-store" });
  try {
    await next();
  } catch (cause) {
    const error = GatewayError.from(cause);
    const level = error.row.status >= 500 ? "error" : "info";
    parts.log[level](
      { request_id: requestId, code: error.code, route: ctx.state.route, detail: error.loggedDetail },
      "request refused",
    );
    if (!(await discardBody(ctx.req))) ctx.set("connection", "close");
    if (error.row.status === 401) ctx.set("www-authenticate", "Bearer");
    answerError(ctx, error, requestId);
  }
}

/** In the shape that clients of the path read. */
function answerError(ctx: Context, error: GatewayError, requestId: string): void {
  const api = modelApiOf(ctx.path);
  if (api !== undefined) answerModelError(ctx, api, error, requestId);
  else if (speaksMcp(ctx.path)) answerMcpError(ctx, error, requestId);
  else answerProblem(ctx, error, requestId);
}

function refuseUnrouted(port: Port): (ctx: Context) => void {
  const known = Object.values(routes)
    .filter((route) => route.port === port)
    .map(({ method, path }) => ({ method, shape: new RegExp(`^${path.replace(/:\w+/g, "[^/]+")}$`) }));
  return (ctx) => {
    const fitting = known.filter(({ shape }) => shape.test(ctx.path));
    const methods = [...new Set(fitting.flatMap(({ method }) => methodsOf(method)))];
    if (methods.length === 0) throw new GatewayError("NOT_FOUND", "no such path on this port");
    ctx.set("allow", methods.join(", "));
    throw new GatewayError("METHOD_NOT_ALLOWED", `expected ${methods.join(", ")}`);
  };
}
