import { anonymousKeyId, type Principal } from "../action/principal.ts";
import { renderSignInError } from "../admin/console/access/error-page.ts";
import { consoleHandlers, consoleRoutes } from "../admin/console/page.ts";
import { configDigest } from "../config/digest.ts";
import type { GatewayConfig } from "../config/gateway-config.ts";
import { renderHookError } from "../gateway/hook/endpoint.ts";
import { LiveEndpoint, type LiveEntrance } from "../gateway/live/endpoint.ts";
import { LivePlaces } from "../gateway/live/place.ts";
import { renderMcpError } from "../gateway/mcp/answer.ts";
import { renderModelError } from "../gateway/model/error.ts";
import { resourceHandlers, resourceRoutes } from "../gateway/protected-resource.ts";
import { gatewayHandlers, gatewayRoutes } from "../gateway/route.ts";
import { keyChallenge } from "../http/access.ts";
import { buildApp, type MountedRoute, mountRoutes } from "../http/app.ts";
import type { Health } from "../http/health.ts";
import { Listener, type Upgrade } from "../http/listener.ts";
import { RequestGuard } from "../http/request.ts";
import type { Log } from "../observe/log.ts";
import type { Port } from "../observe/metrics.ts";
import type { LoadedExtension } from "../policy/extension-load.ts";
import type { Ownership } from "../replica/replica.ts";
import { actionOf } from "../road/described-action.ts";
import { evaluateAction } from "../road/run.ts";
import { closeParts, openParts, type Parts, policiesOf } from "./compose.ts";
import { type ConsoleAccess, openConsole } from "./console.ts";
import { elapsedMs, identity, jsonBounds, newId } from "./identity.ts";
import { operationRoutes } from "./operation.ts";
import { loadPolicies, recordChange } from "./policies.ts";

export interface GatewayPorts {
  readonly gatewayPort: number;
  readonly adminPort: number;
  readonly metricsPort: number;
}

/** A running gateway: three ports open, state held, upstreams supervised. */
export class Gateway {
  readonly ports: GatewayPorts;
  readonly #parts: Parts;
  readonly #live: LiveEndpoint;
  readonly #console: ConsoleAccess;
  readonly #listeners: readonly Listener[];
  readonly #owned: Ownership | null;
  #extensions: readonly LoadedExtension[];

  private constructor(
    parts: Parts,
    live: LiveEndpoint,
    console: ConsoleAccess,
    listeners: readonly Listener[],
    owned: Ownership | null,
  ) {
    this.#parts = parts;
    this.#owned = owned;
    this.#live = live;
    this.#console = console;
    this.#listeners = listeners;
    this.#extensions = parts.extensions;
    const [gateway, admin, metrics] = listeners.map(({ port }) => port) as [number, number, number];
    this.ports = { gatewayPort: gateway, adminPort: admin, metricsPort: metrics };
  }

  /**
   * Opens everything, ports last: whoever can connect is served. `owned`: as one of several replicas, the one that owns the store.
   * Rejects with the GatewayError that says why not.
   */
  static async open(config: GatewayConfig, log: Log, owned: Ownership | null = null): Promise<Gateway> {
    const parts = await openParts(config, log, owned);
    const live = openLive(parts);
    const console = await openConsole(config, parts, elapsedMs);
    const routes = routesOf(parts, console, owned);
    const opened: Listener[] = [];
    try {
      for (const port of ["gateway", "admin", "metrics"] as const) {
        const upgrade = upgradeOf(port, live, parts, console);
        const number = (await owned?.takePort(port)) ?? numberOf(port, config);
        const listener = await openListener(port, number, routes[port], parts, console, upgrade);
        opened.push(listener);
        owned?.serve(port, (socket) => listener.take(socket));
      }
      for (const { port } of opened) parts.egress.claimPort(port);
      const { chain, extensions: after } = parts;
      await recordChange(parts, { event: "started", config, policies: chain.policies, before: [], after });
      await parts.killSwitch.includeNewTenants();
      parts.sessionSweep.start();
      parts.retentionSchedule.start();
      parts.fleet.start();
      parts.reportFeeder?.start();
    } catch (cause) {
      live.close();
      console.sessions.close();
      await Promise.all(opened.map((listener) => listener.close(0)));
      await closeParts(parts);
      throw cause;
    }
    return new Gateway(parts, live, console, opened, owned);
  }

  /**
   * Takes over the packs, the plugins, the engines, their trust and the keys of a new configuration, all or nothing: where anything
   * is wrong it rejects and the last good ones stay. Every evaluation sees either the old policies or the new. Sessions of keys that are gone end.
   */
  async reload(config: GatewayConfig): Promise<void> {
    const { keys, chain, participants, killSwitch, ledger, endpoint, log, config: started } = this.#parts;
    const loaded = await loadPolicies(config, this.#parts);
    const policies = [...policiesOf(participants), ...loaded.policies];
    const refs = policies.map(({ ref }) => ref);
    // Evidence names what is in force: the rest of the file is not, until the next start.
    const { packs, plugins, engines } = config.policy;
    const policy = { ...started.policy, packs, plugins, engines };
    const now = { ...started, keys: config.keys, extensions: config.extensions, policy };
    const [before, after] = [this.#extensions, loaded.extensions];
    await recordChange(this.#parts, { event: "reloaded", config: now, policies: refs, before, after });
    await killSwitch.includeNewTenants();
    // Recorded first: where it cannot be, the last good ones stay. What follows is one turn of the event loop.
    keys.replace(config.keys);
    chain.replacePolicies(policies);
    this.#extensions = after;
    ledger.updateConfigDigest(configDigest(now));
    if (configDigest(config) !== configDigest(now)) log.warn("restart_required");
    const isKnown = (principal: Principal): boolean => principal.keyId === anonymousKeyId || keys.has(principal);
    this.#live.endRevoked(isKnown);
    this.#console.sessions.endRevoked(isKnown);
    await endpoint.endRevoked(isKnown);
  }

  /**
   * Stops accepting, lets what is in flight finish for `drainMs`, by default as configured, then closes upstreams, evidence and
   * state, in this order.
   */
  async close(drainMs = this.#parts.config.limits.drainMs): Promise<void> {
    this.#parts.life.stopping = true;
    this.#owned?.stopServing();
    this.#live.close();
    this.#console.sessions.close();
    this.#parts.endpoint.endStreams();
    await Promise.all(this.#listeners.map((listener) => listener.close(drainMs)));
    await closeParts(this.#parts);
  }
}

/** The routes of each port. Their schemas are compiled here, before anything listens. */
function routesOf(
  parts: Parts,
  console: ConsoleAccess,
  owned: Ownership | null,
): Readonly<Record<Port, readonly MountedRoute[]>> {
  const { keyRule, callerRule, fairShare, config } = parts;
  const health = (): Health => healthOf(parts, owned);
  const policies = () => parts.chain.active;
  const callerOf = (rawHeaders: readonly string[]) => console.callers.find(rawHeaders)?.principal ?? null;
  const entrances = { keyRule, guard: requestGuardOf(parts), console: console.callers };
  const operations = operationRoutes(parts, entrances, health);
  const pages = consoleHandlers({ ...parts, health, policies, callerOf });
  const { oauth } = config;
  return {
    gateway: [
      ...mountRoutes(gatewayRoutes, gatewayHandlers({ ...parts, health }), callerRule, fairShare),
      ...(oauth === null ? [] : mountRoutes(resourceRoutes, resourceHandlers(oauth), callerRule, fairShare)),
    ],
    admin: operations.admin,
    metrics: [...mountRoutes(consoleRoutes, pages, keyRule, fairShare), ...console.routes, ...operations.console],
  };
}

function numberOf(port: Port, { listen }: GatewayConfig): number {
  return { gateway: listen.gatewayPort, admin: listen.adminPort, metrics: listen.metricsPort }[port];
}

function openListener(
  port: Port,
  number: number,
  routes: readonly MountedRoute[],
  parts: Parts,
  console: ConsoleAccess,
  upgrade: Upgrade | null,
): Promise<Listener> {
  const { config, metrics, log } = parts;
  const renderers = [
    renderModelError,
    renderMcpError,
    renderHookError,
    ...(port === "metrics" ? [renderSignInError] : []),
  ];
  const challenge = port === "gateway" ? parts.challenge : keyChallenge;
  // The admin port has a limit of its own.
  const failures = port === "admin" ? null : parts.failures;
  const guard = port === "metrics" ? console.guard : requestGuardOf(parts);
  const app = buildApp(port, { routes, renderers, guard, challenge, failures, metrics, log, newId });
  const host = port === "gateway" ? config.listen.host : config.listen.adminHost;
  return Listener.open(app, host, number, config.limits, upgrade);
}

/** Returns what takes over the WebSockets of a port. On the console's, they may also come with the cookie of a session. */
function upgradeOf(port: Port, live: LiveEndpoint, parts: Parts, console: ConsoleAccess): Upgrade | null {
  if (port === "admin") return null;
  const entrance = port === "gateway" ? keyEntrance(parts) : console.live;
  return (...taken) => live.upgrade(entrance, ...taken);
}

function keyEntrance(parts: Parts): LiveEntrance {
  const guard = requestGuardOf(parts);
  return {
    check: (request) => guard.check(request),
    callerOf: ({ rawHeaders }) => {
      const principal = parts.keyRule.identifyIfPresented(rawHeaders);
      return principal === null ? null : { principal };
    },
  };
}

function openLive(parts: Parts): LiveEndpoint {
  const { config, keys, live, road, taskBinding } = parts;
  const described = { clock: Date.now, newId, taskBinding };
  return new LiveEndpoint({
    feed: live,
    isEnabled: config.limits.maxWebsockets > 0,
    places: new LivePlaces(config.limits),
    bounds: jsonBounds(config),
    fairShare: parts.fairShare,
    failures: parts.failures,
    authenticate: (key) => keys.authenticate(key),
    describe: (action, caller, client) => actionOf(action, caller, client, described),
    evaluate: async (action) => (await evaluateAction(road, action)).evaluation,
  });
}

function requestGuardOf({ config: { listen } }: Parts): RequestGuard {
  return new RequestGuard(listen.allowedHosts, listen.allowedOrigins);
}

function healthOf({ life, ledger }: Parts, owned: Ownership | null): Health {
  const { version } = identity;
  if (life.stopping) return { status: "stopping", version };
  if (owned?.isHeld() === false) return { status: "fenced", version };
  return { status: ledger.writable ? "ok" : "degraded", version };
}
