import type { IncomingMessage } from "node:http";
import Router from "@koa/router";
import Koa, { type Context, type Next } from "koa";
import { GatewayError } from "../action/error.ts";
import { asciiJson } from "../action/json.ts";
import type { Principal } from "../action/principal.ts";
import { type AdminPort, isOperation } from "../admin/admin-port.ts";
import { answerMcpError, speaksMcp } from "../gateway/mcp/refusal.ts";
import { answerModelError, modelApiOf } from "../gateway/model/error.ts";
import type { Log } from "../observe/log.ts";
import type { Metrics, Port } from "../observe/metrics.ts";
import { type AdminHandlers, type PublicRouteId, type Route, type RouteId, routes } from "../operation/operation.ts";
import { type AccessRule, checkRole } from "./access.ts";
import { guard, type HostRule } from "./guard.ts";

/** What a route does, once its caller is known. `requestId` names this request in the log and in errors. */
type Handler = (ctx: Context, caller: Principal, requestId: string) => Promise<void> | void;
type PublicHandler = (ctx: Context) => Promise<void> | void;

interface AppParts {
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
  app.on("error", (error: unknown) => logBrokenResponse(parts.log, error));
  app.use((ctx, next) => measure(ctx, next, port, parts.metrics));
  // People read there, and programs of ours; what agents are told stays as short as it came.
  if (port !== "gateway") app.use(answerPrintably);
  app.use((ctx, next) => answerErrors(ctx, next, parts));
  app.use(guard(parts.hostRule));
  app.use(buildRouter(port, handlers, parts).routes());
  app.use(refuseUnrouted(port));
  return app;
}

/** The codes of Node for a socket that its peer closed or reset. */
const disconnectCodes: ReadonlySet<string> = new Set([
  "ECONNABORTED",
  "ECONNRESET",
  "EPIPE",
  "ERR_STREAM_PREMATURE_CLOSE",
  "ETIMEDOUT",
]);

/**
 * Logs a response that ended before it was complete. Clients and upstreams that disconnect are everyday events, logged
 * at `info` with the code of the socket or of the error table; anything else is a fault of the gateway.
 */
export function logBrokenResponse(log: Pick<Log, "info" | "error">, fault: unknown): void {
  const { code: socketCode } = fault as { readonly code?: unknown };
  const error = GatewayError.from(fault);
  if (error.code === "CANCELLED") log.info({ code: error.code }, "client_disconnected");
  else if (typeof socketCode === "string" && disconnectCodes.has(socketCode)) {
    log.info({ code: socketCode }, "client_disconnected");
  } else if (/^(?:UPSTREAM|PROVIDER)_/.test(error.code)) {
    log.info({ code: error.code, detail: error.loggedDetail }, "upstream_disconnected");
  } else log.error({ code: error.code, detail: error.loggedDetail }, "response_failed");
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

const maxBytes = 32 * 1024 * 1024;
const maxMs = 2_000;

/**
 * Reads and drops what is left of a request's body, so that its sender gets to read the answer: a connection that is
 * closed on a peer that still sends is reset, and what was answered is lost with it.
 * Resolves with whether the body ended, within 32 MiB and 2 s. If not, the connection can carry no further request.
 */
function discardBody(request: IncomingMessage): Promise<boolean> {
  if (request.readableEnded || request.destroyed) return Promise.resolve(request.complete);
  if (Number(request.headers["content-length"] ?? 0) > maxBytes) return Promise.resolve(false);
  return new Promise((resolve) => {
    let size = 0;
    const count = (chunk: Buffer): void => {
      size += chunk.length;
      if (size > maxBytes) finish(false);
    };
    const finish = (ended: boolean): void => {
      clearTimeout(timer);
      request.off("data", count).pause();
      resolve(ended);
    };
    const timer = setTimeout(() => finish(false), maxMs);
    request.once("end", () => finish(true));
    request.once("close", () => finish(request.complete));
    request.on("data", count).resume();
  });
}

/**
 * Answers JSON in printable ASCII: names, reasons and messages are written by agents, upstreams and people, and whoever
 * looks at them with bare eyes must not be misled, nor their terminal driven. It reads back as the same values.
 */
async function answerPrintably(ctx: Context, next: Next): Promise<void> {
  await next();
  const { body } = ctx;
  if (typeof body !== "object" || body === null || Buffer.isBuffer(body)) return;
  ctx.body = asciiJson(body);
}

/** Answers an error as RFC 9457 problem+json. The cause stays in the log, under the same request id.
 * Where waiting helps, `Retry-After` says for how long. */
function answerProblem(ctx: Context, error: GatewayError, requestId: string): void {
  ctx.status = error.row.status;
  ctx.type = "application/problem+json";
  const { retry_after_s: seconds } = error.data ?? {};
  if (error.row.expose && typeof seconds === "number") ctx.set("retry-after", String(seconds));
  ctx.body = {
    type: "about:blank",
    title: error.row.text,
    status: error.row.status,
    detail: error.publicMessage,
    code: error.code,
    request_id: requestId,
    ...(error.row.expose && error.data !== undefined ? { data: error.data } : {}),
  };
}
