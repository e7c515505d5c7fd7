import { randomBytes } from "node:crypto";
import { ConsoleCallers } from "../admin/console/access/caller.ts";
import { ConsoleCookie } from "../admin/console/access/cookie.ts";
import { OneTimeLinks } from "../admin/console/access/link.ts";
import type { OidcSignIn } from "../admin/console/access/oidc-sign-in.ts";
import { accessHandlers, accessRoutes } from "../admin/console/access/route.ts";
import { ConsoleSessions } from "../admin/console/access/session.ts";
import type { GatewayConfig } from "../config/gateway-config.ts";
import type { EgressGuard } from "../egress/egress-guard.ts";
import type { LiveEntrance } from "../gateway/live/endpoint.ts";
import { type MountedRoute, mountRoutes } from "../http/app.ts";
import { ConcurrencyLimit } from "../http/rate.ts";
import { RequestGuard } from "../http/request.ts";
import type { Log } from "../observe/log.ts";
import { type AccessParts, openSigningKeys } from "./access.ts";

/** The way in to the console. */
export interface ConsoleAccess {
  readonly callers: ConsoleCallers;
  readonly sessions: ConsoleSessions;
  readonly guard: RequestGuard;
  /** The routes by which people come in. */
  readonly routes: readonly MountedRoute[];
  /** The way in to `/v1/ws`. */
  readonly live: LiveEntrance;
}

interface ConsoleDependencies extends Pick<AccessParts, "keys" | "keyRule"> {
  readonly log: Log;
  readonly egress: EgressGuard;
  readonly fairShare: Parameters<typeof mountRoutes>[3];
}

/** People who begin or end a sign-in at a provider: half of them from one address. */
const maxSignInsAtOnce = 32;

const local = "run `gateway console` on the gateway's machine and open the link it prints";
const proxied = "let a reverse proxy that has authenticated you add `X-API-Key`";

/** Opens the way in to the console that a configuration describes. `elapsedMs`: monotonic, milliseconds. */
export async function openConsole(
  { listen, console }: Pick<GatewayConfig, "listen" | "console">,
  { keys, keyRule, log, egress, fairShare }: ConsoleDependencies,
  elapsedMs: () => number,
): Promise<ConsoleAccess> {
  const { publicUrl, recentSignInMs: recentMs } = console;
  const isSecure = publicUrl?.startsWith("https:") ?? false;
  const guard = consoleGuard(listen, publicUrl);
  const parts = { recentMs, clock: Date.now, elapsedMs, random: randomBytes };
  const sessions = new ConsoleSessions(parts);
  const cookie = new ConsoleCookie("agw_console", isSecure);
  const links = new OneTimeLinks(parts);
  const signIn = await openOidc(console, parts, log, egress);
  const oidc =
    signIn === null
      ? null
      : {
          signIn,
          cookie: new ConsoleCookie("agw_sign_in", isSecure, "Lax"),
          limit: new ConcurrencyLimit(maxSignInsAtOnce),
        };
  const notice = `Protected views need a sign-in, and this page asks for no key: ${oidc === null ? "" : "sign in, or "}${local}, or ${proxied}.`;
  const callers = new ConsoleCallers({ keyRule, sessions, cookie, guard, notice });
  const isKnown = keys.has.bind(keys);
  const handlers = accessHandlers({ callers, sessions, cookie, links, oidc, guard, notice, isKnown });
  const routes = mountRoutes(accessRoutes, handlers, keyRule, fairShare);
  return { callers, sessions, guard, routes, live: liveEntrance(callers, sessions, guard) };
}

/** Opens the sign-in at a provider; null where none is configured. Without it nothing of jose is loaded. */
async function openOidc(
  { publicUrl, oidc: config }: GatewayConfig["console"],
  parts: Omit<ConstructorParameters<typeof OidcSignIn>[0], "config" | "client">,
  log: Log,
  egress: EgressGuard,
): Promise<OidcSignIn | null> {
  if (config === null) return null;
  const [{ OidcSignIn }, { OidcClient }] = await Promise.all([
    import("../admin/console/access/oidc-sign-in.ts"),
    import("../identity/oidc-client.ts"),
  ]);
  const { issuer } = config;
  const keys = await openSigningKeys({ issuer, jwksUri: null, jwksCacheMs, jwksRefetchMs }, log, egress);
  const onFault = (fault: string, detail: string | undefined): void =>
    log.warn({ issuer, fault, detail }, "sign_in_failed");
  const redirectUri = `${publicUrl}${accessRoutes["console.callback"].path}`;
  return new OidcSignIn({
    ...parts,
    config,
    client: new OidcClient({ ...parts, config, redirectUri, keys, egress, onFault }),
  });
}

const jwksCacheMs = 600_000;
const jwksRefetchMs = 2_000;

/** Admits to `/v1/ws` by a key or by the cookie of a session, from the console's own page; a session's end ends it. */
function liveEntrance(callers: ConsoleCallers, sessions: ConsoleSessions, guard: RequestGuard): LiveEntrance {
  return {
    check: (request) => guard.check(request),
    callerOf: (request) => {
      const caller = callers.find(request.rawHeaders);
      if (caller === null) return null;
      guard.checkOwnPage(request);
      const { principal, session } = caller;
      return { principal, onEnd: session === null ? undefined : (end) => sessions.onEnd(session, end) };
    },
  };
}

/** The guard of the console's port: the host and the origin of its public URL are as good as those that are listed. */
function consoleGuard(
  { allowedHosts, allowedOrigins }: GatewayConfig["listen"],
  publicUrl: string | null,
): RequestGuard {
  if (publicUrl === null) return new RequestGuard(allowedHosts, allowedOrigins);
  return new RequestGuard([...allowedHosts, new URL(publicUrl).host], [...allowedOrigins, publicUrl]);
}
