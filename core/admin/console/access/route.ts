import type { Context } from "koa";
import { GatewayError } from "../../../action/error.ts";
import type { Principal } from "../../../action/principal.ts";
import { addressOf } from "../../../http/access.ts";
import type { PortRoutes, RouteHandlers } from "../../../http/app.ts";
import type { ConcurrencyLimit } from "../../../http/rate.ts";
import type { RequestGuard } from "../../../http/request.ts";
import type { ConsoleCallers } from "./caller.ts";
import type { ConsoleCookie } from "./cookie.ts";
import { linkSeconds, type OneTimeLinks } from "./link.ts";
import type { OidcSignIn } from "./oidc-sign-in.ts";
import { valueIn } from "./query.ts";
import type { ConsoleSession, ConsoleSessions, SignIn } from "./session.ts";

/** The routes by which people come into the console, and leave it. */
export const accessRoutes = {
  "console.session": { method: "GET", path: "/console/session", access: "public" },
  "console.issue_link": { method: "POST", path: "/console/links", access: "key" },
  "console.link": { method: "GET", path: "/console/link", access: "public" },
  "console.sign_in": { method: "GET", path: "/console/sign-in", access: "public" },
  "console.callback": { method: "GET", path: "/console/callback", access: "public" },
  "console.sign_out": { method: "POST", path: "/console/sign-out", access: "public" },
} as const satisfies PortRoutes;

interface OidcAccess {
  readonly signIn: OidcSignIn;
  readonly cookie: ConsoleCookie;
  /** Bounds what the provider is asked at once. */
  readonly limit: ConcurrencyLimit;
}

interface AccessSources {
  readonly callers: ConsoleCallers;
  readonly sessions: ConsoleSessions;
  readonly cookie: ConsoleCookie;
  readonly links: OneTimeLinks;
  /** Null where nobody signs in at a provider. */
  readonly oidc: OidcAccess | null;
  readonly guard: RequestGuard;
  /** Says to who has not signed in how to do so. */
  readonly notice: string;
  /** Returns whether a principal may still act. */
  readonly isKnown: (principal: Principal) => boolean;
}

/** Handlers of the routes by which people come in. */
export function accessHandlers(sources: AccessSources): RouteHandlers<typeof accessRoutes> {
  const { callers, sessions, links, guard, cookie } = sources;
  return {
    "console.session": (ctx) => {
      const caller = callers.findOnOwnPage(ctx.req);
      if (caller === null) return showNotice(ctx, sources);
      const { principal, session } = caller;
      const isGood = session !== null && (session.by !== "key" || sessions.isRecent(session));
      showSession(ctx, sources, isGood ? session : renew(ctx, sources, session, signInByKey(principal)));
    },
    "console.issue_link": (ctx, caller) => {
      guard.checkChange(ctx.req);
      guard.checkOwnMachine(ctx.req);
      keepFromOthers(ctx);
      ctx.body = { path: `/console/link?token=${links.issue(caller)}`, expires_in_s: linkSeconds };
    },
    "console.link": (ctx) => {
      guard.checkOwnMachine(ctx.req);
      guard.checkOwnPage(ctx.req);
      const principal = links.redeem(valueIn(new URLSearchParams(ctx.querystring), "token"));
      if (!sources.isKnown(principal)) throw new GatewayError("LINK_INVALID", "its key was removed");
      renew(ctx, sources, sessionOf(ctx, sources), { by: "link", principal, name: principal.keyId, ageMs: 0 });
      leadTo(ctx, "/");
    },
    "console.sign_in": async (ctx) => {
      const { signIn, cookie: own, limit } = oidcOf(sources);
      const place = valueIn(new URLSearchParams(ctx.querystring), "to");
      const begun = await limit.run(addressOf(ctx.req), () => signIn.begin(place));
      ctx.set("set-cookie", own.set(begun.cookie));
      leadTo(ctx, begun.url);
    },
    "console.callback": async (ctx) => {
      const { signIn, cookie: own, limit } = oidcOf(sources);
      const begun = own.read(ctx.req.rawHeaders);
      const query = new URLSearchParams(ctx.querystring);
      const { signIn: signedIn, place } = await limit.run(addressOf(ctx.req), () => signIn.finish(query, begun));
      ctx.append("set-cookie", own.clear());
      renew(ctx, sources, sessionOf(ctx, sources), signedIn);
      leadTo(ctx, place === "" ? "/" : `/#/${place}`);
    },
    "console.sign_out": (ctx) => {
      guard.checkChange(ctx.req);
      if (callers.find(ctx.req.rawHeaders) === null) throw callers.refusal();
      sessions.end(callers.findSession(ctx.req));
      ctx.set("set-cookie", cookie.clear());
      showNotice(ctx, sources);
    },
  };
}

/** The proxy has signed this person in, and says so with every request. */
function signInByKey(principal: Principal): SignIn {
  return { by: "key", principal, name: principal.keyId, ageMs: 0 };
}

/** Opens a session in place of the former one, under a cookie and a CSRF token of its own. */
function renew(
  ctx: Context,
  { sessions, cookie }: AccessSources,
  former: ConsoleSession | null,
  signIn: SignIn,
): ConsoleSession {
  if (former !== null) sessions.end(former);
  const opened = sessions.open(signIn);
  ctx.append("set-cookie", cookie.set(opened.cookie));
  return opened.session;
}

function showSession(ctx: Context, { sessions }: AccessSources, session: ConsoleSession): void {
  const { by, principal, name, csrf } = session;
  const { id, tenant, role } = principal;
  keepFromOthers(ctx);
  ctx.body = {
    authenticated: true,
    by,
    principal: { id, tenant, role, name },
    csrf,
    ...sessions.times(session),
    // Behind a proxy that adds a key, signing out is up to the proxy.
    sign_out: by !== "key",
  };
}

function showNotice(ctx: Context, { notice, oidc }: AccessSources): void {
  keepFromOthers(ctx);
  ctx.body = {
    authenticated: false,
    notice,
    sign_in: oidc === null ? {} : { oidc: accessRoutes["console.sign_in"].path },
  };
}

/** No page of another origin gets this response, by whatever element it asks. */
function keepFromOthers(ctx: Context): void {
  ctx.set({ "cross-origin-resource-policy": "same-origin", "referrer-policy": "no-referrer" });
}

/** Leads a browser elsewhere, from a URL that may hold a secret. */
function leadTo(ctx: Context, address: string): void {
  keepFromOthers(ctx);
  ctx.status = 303;
  ctx.set("location", address);
  ctx.body = "";
}

function sessionOf({ req }: Context, { sessions, cookie }: AccessSources): ConsoleSession | null {
  return sessions.find(cookie.read(req.rawHeaders)) ?? null;
}

function oidcOf({ oidc }: AccessSources): OidcAccess {
  if (oidc !== null) return oidc;
  throw new GatewayError("NOT_FOUND", "nobody signs in at a provider here: `console.oidc` is not configured");
}
