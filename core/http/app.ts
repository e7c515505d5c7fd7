import type { IncomingMessage } from "node:http";
import { setTimeout as sleep } from "node:timers/promises";
import Router from "@koa/router";
import Koa, { type Context, type Next } from "koa";
import { GatewayError } from "../action/error.ts";
import { asciiJson } from "../action/json.ts";
import type { Principal } from "../action/principal.ts";
import type { Permission } from "../action/role.ts";
import { didYouMean } from "../action/suggestion.ts";
import type { Log } from "../observe/log.ts";
import type { Metrics, Port } from "../observe/metrics.ts";
import type { Access } from "../operation/operation.ts";
import { addressOf, type CallerRule, type Challenge } from "./access.ts";
import type { FairShare, Spending } from "./fair-share.ts";
import type { FailureRate } from "./rate.ts";
import { retryAfterHeader } from "./refusal.ts";
import { type RequestGuard, refusalDelayMs } from "./request.ts";

/** A method and path of a port. `GET` serves `HEAD` too. No role is required: a permission belongs to an `AdminOperation`. */
export interface Route {
  readonly method: "GET" | "POST" | "DELETE";
  readonly path: string;
  readonly access: Exclude<Access, Permission>;
  /** The part of its caller's share that a request spends; absent: none. */
  readonly spends?: Spending;
}

/** The routes of a port by id. An id names its route in metrics and logs. */
export type PortRoutes = Readonly<Record<string, Route>>;

/** A method and path with the function that serves it, which sets `ctx.state.route` to the route's id first. */
export interface MountedRoute extends Pick<Route, "method" | "path"> {
  readonly serve: (ctx: Context) => Promise<void> | void;
}

/** `requestId` names the request in the log and in errors. */
type Handler = (ctx: Context, caller: Principal, requestId: string) => Promise<void> | void;
type PublicHandler = (ctx: Context) => Promise<void> | void;

/** A handler for each route of a table, called once its caller is admitted. */
export type RouteHandlers<Table extends PortRoutes> = {
  readonly [Id in keyof Table]: Table[Id]["access"] extends "public" ? PublicHandler : Handler;
};

/** Pairs each route with its handler, behind the check of the caller and of its share. */
export function mountRoutes<Table extends PortRoutes>(
  table: Table,
  handlers: RouteHandlers<Table>,
  callerRule: CallerRule,
  fairShare: Pick<FairShare, "admit">,
): readonly MountedRoute[] {
  return Object.entries(table).map(([id, route]) => {
    const serve = (ctx: Context, verified?: Principal): Promise<void> | void => {
      ctx.state.route = id;
      if (route.access === "public") return (handlers[id] as PublicHandler)(ctx);
      const caller = verified ?? callerRule.identify(route.access, ctx.req.rawHeaders);
      if (caller instanceof Promise) return caller.then((principal) => serve(ctx, principal));
      if (route.spends !== undefined) fairShare.admit(caller, route.spends);
      return (handlers[id] as Handler)(ctx, caller, ctx.state.requestId as string);
    };
    return { ...route, serve };
  });
}

/** Renders an error for the clients of some paths. False: not for the clients of this path. */
type ErrorRenderer = (ctx: Context, error: GatewayError, requestId: string) => boolean;

interface AppParts {
  readonly routes: readonly MountedRoute[];
  /** Tried in order; where none applies, an error is rendered as problem+json. */
  readonly renderers: readonly ErrorRenderer[];
  readonly guard: RequestGuard;
  readonly challenge: Challenge;
  /** Counts bad keys; null on a port whose routes do so themselves. */
  readonly failures: FailureRate | null;
  readonly metrics: Metrics;
  readonly log: Log;
  readonly newId: () => string;
}

/** The Koa application of one port: each request is measured, guarded and routed; errors are logged and rendered. */
export function buildApp(port: Port, parts: AppParts): Koa {
  const app = new Koa({ proxy: false });
  app.silent = true;
  app.on("error", (error: unknown) => logBrokenResponse(parts.log, error));
  // Read by people and our own programs; the gateway port relays to agents what upstreams sent.
  if (port !== "gateway") app.use(renderPrintably);
  app.use(handleRequests(port, parts));
  app.use(buildRouter(parts.routes.filter(hasParameter)).routes());
  app.use(refuseUnrouted(parts.routes));
  return app;
}

/**
 * The first middleware of a port: names, measures and guards each request, and refuses those that fail. It serves the
 * routes without a parameter itself, with one look-up where the router tries each route.
 */
function handleRequests(port: Port, parts: AppParts): Koa.Middleware {
  const { metrics, guard, newId } = parts;
  const served = indexFixedPaths(parts.routes);
  return async (ctx, next) => {
    const start = performance.now();
    const requestId = newId();
    ctx.state.requestId = requestId;
    ctx.res.once("close", () => {
      const seconds = (performance.now() - start) / 1000;
      metrics.answered(port, (ctx.state.route as string | undefined) ?? "none", ctx.res.statusCode, seconds);
    });
    ctx.set({ "x-request-id": requestId, "x-content-type-options": "nosniff", "cache-control": "no-store" });
    try {
      guard.check(ctx.req);
      const serve = served.get(`${ctx.method} ${ctx.path}`);
      if (serve === undefined) await next();
      else {
        ctx.params = {};
        await serve(ctx);
      }
    } catch (cause) {
      await refuse(ctx, GatewayError.from(cause), requestId, parts);
    }
  };
}

async function refuse(ctx: Context, fault: GatewayError, requestId: string, parts: AppParts): Promise<void> {
  const error = parts.failures?.refuseBadKey(addressOf(ctx.req), fault) ?? fault;
  const level = error.row.status >= 500 ? "error" : "info";
  const { code, loggedDetail: detail } = error;
  parts.log[level]({ request_id: requestId, code, route: ctx.state.route, detail }, "request_refused");
  if (error.code === "RATE_LIMITED") await sleep(refusalDelayMs(lengthOf(ctx.req)));
  if (!(await discardBody(ctx.req))) ctx.set("connection", "close");
  if (error.row.status === 401) ctx.set("www-authenticate", parts.challenge(error));
  if (!parts.renderers.some((render) => render(ctx, error, requestId))) renderProblem(ctx, error, requestId);
}

/** The declared length of a body; infinite where it is not declared. */
function lengthOf({ headers }: IncomingMessage): number {
  return headers["transfer-encoding"] === undefined ? Number(headers["content-length"] ?? 0) : Number.POSITIVE_INFINITY;
}

/** Returns what serves the routes without a parameter, by method and path. */
function indexFixedPaths(routes: readonly MountedRoute[]): ReadonlyMap<string, MountedRoute["serve"]> {
  const served = new Map<string, MountedRoute["serve"]>();
  for (const route of routes) {
    if (hasParameter(route)) continue;
    for (const method of methodsOf(route.method)) served.set(`${method} ${route.path}`, route.serve);
  }
  return served;
}

/** The first route that fits serves the request. */
function buildRouter(routes: readonly MountedRoute[]): Router {
  const router = new Router({ strict: true, sensitive: true });
  // The router passes `next` as well, which is no caller.
  for (const { method, path, serve } of routes) router.register(path, methodsOf(method), (ctx) => serve(ctx));
  return router;
}

function hasParameter({ path }: MountedRoute): boolean {
  return path.includes(":");
}

function methodsOf(method: string): string[] {
  return method === "GET" ? ["GET", "HEAD"] : [method];
}

const maxShownPath = 128;

function refuseUnrouted(routes: readonly MountedRoute[]): (ctx: Context) => void {
  const paths = new Set(routes.map(({ path }) => path));
  const known = routes.map(({ method, path }) => ({
    method,
    shape: new RegExp(`^${path.replace(/:\w+/g, "[^/]+")}$`),
  }));
  return (ctx) => {
    const fitting = known.filter(({ shape }) => shape.test(ctx.path));
    const methods = [...new Set(fitting.flatMap(({ method }) => methodsOf(method)))];
    if (methods.length === 0) {
      const path = ctx.path.slice(0, maxShownPath);
      throw new GatewayError("NOT_FOUND", `no such path on this port: \`${path}\`${didYouMean(path, paths)}`);
    }
    ctx.set("allow", methods.join(", "));
    throw new GatewayError("METHOD_NOT_ALLOWED", `expected ${methods.join(", ")}`);
  };
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

const maxBytes = 32 * 1024 * 1024;
const maxMs = 2_000;

/**
 * Reads and drops the rest of a request's body, so that its sender gets to read the response: closing a connection while
 * the peer still sends resets it, and the response is lost. Resolves with true where the body ended within 32 MiB and
 * 2 s. Otherwise the connection can carry no further request.
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
 * Renders JSON in printable ASCII: names, reasons and messages are written by agents, upstreams and people, and must
 * neither mislead whoever reads them unparsed nor control their terminal. It parses to the same values.
 */
async function renderPrintably(ctx: Context, next: Next): Promise<void> {
  await next();
  const { body } = ctx;
  if (typeof body !== "object" || body === null || Buffer.isBuffer(body)) return;
  ctx.body = asciiJson(body);
}

/**
 * Renders an error as RFC 9457 problem+json. The cause stays in the log, under the same request id. `Retry-After` says
 * when to try again, where that is known.
 */
function renderProblem(ctx: Context, error: GatewayError, requestId: string): void {
  ctx.status = error.row.status;
  ctx.type = "application/problem+json";
  if (error.row.expose) ctx.set(retryAfterHeader(error));
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
