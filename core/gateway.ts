import { randomBytes } from "node:crypto";
import { join } from "node:path";
import { configDigest } from "./config/digest.ts";
import type { GatewayConfig } from "./config/gateway-config.ts";
import { Custody } from "./evidence/custody.ts";
import { openKeyStores } from "./evidence/key-store.ts";
import { Ledger } from "./evidence/ledger.ts";
import { SessionExport } from "./evidence/session-export.ts";
import { KeyRing } from "./identity/key-ring.ts";
import { AccessRule } from "./ingress/access.ts";
import { buildApp } from "./ingress/app.ts";
import { handlersOf } from "./ingress/handler-table.ts";
import type { Health } from "./ingress/health.ts";
import { HostRule } from "./ingress/host-rule.ts";
import { Listener } from "./ingress/listener.ts";
import { ActionFactory } from "./ingress/mcp/action-factory.ts";
import { McpEndpoint } from "./ingress/mcp/endpoint.ts";
import { SessionTable } from "./ingress/mcp/session-table.ts";
import { SseEndpoint, type SseParts } from "./ingress/mcp/sse-endpoint.ts";
import type { Policy, PolicyRef } from "./kernel/policy.ts";
import { anonymousKeyId } from "./kernel/principal.ts";
import { poolRandom } from "./kernel/random-pool.ts";
import type { JsonBounds } from "./kernel/strict-json.ts";
import { uuidV7 } from "./kernel/uuid.ts";
import { WebhookFeed } from "./notify/feed.ts";
import type { Log } from "./observe/log.ts";
import { Metrics, type Port } from "./observe/metrics.ts";
import { recordConfiguration } from "./pipeline/configuration-record.ts";
import { Road } from "./pipeline/road.ts";
import { Chain } from "./policy/chain.ts";
import { loadPacks } from "./policy/pack.ts";
import { lockWatch } from "./store/lock.ts";
import { openStore } from "./store/open.ts";
import { UpstreamFleet } from "./upstream/fleet.ts";

/** What the gateway calls itself towards clients and upstreams. */
export const identity = { name: "agent-governance-gateway", version: "0.1.0" } as const;

export interface GatewayPorts {
  readonly gatewayPort: number;
  readonly adminPort: number;
  readonly metricsPort: number;
}

/** A running gateway: three ports open, state held, upstreams supervised. */
export class Gateway {
  readonly ports: GatewayPorts;
  readonly #parts: Parts;
  readonly #listeners: readonly Listener[];

  private constructor(parts: Parts, listeners: readonly Listener[]) {
    this.#parts = parts;
    this.#listeners = listeners;
    const [gateway, admin, metrics] = listeners.map(({ port }) => port) as [number, number, number];
    this.ports = { gatewayPort: gateway, adminPort: admin, metricsPort: metrics };
  }

  /** Opens everything, ports last: whoever can connect is served. Rejects with the GatewayError that says why not. */
  static async open(config: GatewayConfig, log: Log): Promise<Gateway> {
    const parts = await openParts(config, log);
    const opened: Listener[] = [];
    try {
      for (const port of ["gateway", "admin", "metrics"] as const) opened.push(await openListener(port, parts));
      await recordChange(parts, "started", parts.chain.policies, config);
    } catch (cause) {
      await Promise.all(opened.map((listener) => listener.close(0)));
      await closeParts(parts);
      throw cause;
    }
    return new Gateway(parts, opened);
  }

  /**
   * Takes over the packs and keys of a new configuration, all or nothing: where anything is wrong it rejects and the
   * last good ones stay. Every evaluation sees either the old policies or the new. Sessions of keys that are gone end.
   */
  async reload(config: GatewayConfig): Promise<void> {
    const { keys, chain, ledger, endpoint, log, config: started } = this.#parts;
    const policies = await loadPolicies(config);
    const refs = policies.map(({ ref }) => ref);
    // Evidence names what is in force: the rest of the file is not, until the next start.
    const now = { ...started, keys: config.keys, policy: { ...started.policy, packs: config.policy.packs } };
    await recordChange(this.#parts, "reloaded", refs, now);
    // Recorded first: where it cannot be, the last good ones stay. What follows is one turn of the event loop.
    keys.replace(config.keys);
    chain.replacePolicies(policies);
    ledger.updateConfigDigest(configDigest(now));
    if (configDigest(config) !== configDigest(now)) log.warn("what changed beside packs and keys waits for a start");
    await endpoint.endRevoked((principal) => principal.keyId === anonymousKeyId || keys.has(principal));
  }

  /** Stops accepting, lets what is in flight finish, then closes upstreams, evidence and state, in this order. */
  async close(): Promise<void> {
    this.#parts.life.stopping = true;
    this.#parts.endpoint.endStreams();
    const { drainMs } = this.#parts.config.limits;
    await Promise.all(this.#listeners.map((listener) => listener.close(drainMs)));
    await closeParts(this.#parts);
  }
}

type Parts = Awaited<ReturnType<typeof openParts>>;

async function openParts(config: GatewayConfig, log: Log) {
  const policies = await loadPolicies(config);
  const metrics = new Metrics();
  const fleet = openFleet(config, log);
  const evidence = await openEvidence(config, log, metrics);
  const chain = new Chain({
    policies,
    defaultDecision: config.policy.defaultDecision,
    deadlineMs: config.policy.deadlineMs,
    newId,
    elapsedUs: () => performance.now() * 1000,
  });
  const sessions = new SessionTable({
    mostSessions: config.mcpGateway.maxSessions,
    idleMs: config.mcpGateway.sessionIdleMs,
    clock: Date.now,
    newId: () => randomBytes(32).toString("base64url"),
    onCount: (count) => metrics.mcpSessions(count),
  });
  const endpoints = openEndpoints(config, log, { ledger: evidence.ledger, metrics, chain, fleet, sessions });
  const keys = new KeyRing(config.keys);
  return { config, log, metrics, ...evidence, keys, chain, fleet, sessions, ...endpoints, life: { stopping: false } };
}

function openFleet(config: GatewayConfig, log: Log): UpstreamFleet {
  return new UpstreamFleet({
    configs: config.upstreams,
    replyBounds: { ...jsonBounds(config), reader: "tolerant" },
    replyBytes: config.limits.upstreamReplyBytes,
    clock: Date.now,
    gatewayInfo: identity,
    onEvent: (event) => log.info({ ...event }, "upstream"),
  });
}

async function openEvidence(config: GatewayConfig, log: Log, metrics: Metrics) {
  const { dataDir, state, evidence } = config;
  const store = await openStore({ dir: dataDir, enabled: state.enabled });
  const ports = {
    store,
    ...openKeyStores(state.enabled ? join(dataDir, "keys") : null, randomBytes),
    clock: Date.now,
    random: randomBytes,
    onWarning: (message: string, fields: object): void => log.warn(fields, message),
  };
  const ledger = await Ledger.open({
    ...ports,
    holdsStore: lockWatch(store, dataDir, state.enabled),
    highWaterPath: state.enabled ? join(dataDir, "high-water") : null,
    fieldPolicy: evidence,
    writerId: newId(),
    configDigest: configDigest(config),
  });
  const custody = await Custody.start({
    ...ports,
    ledger,
    witnesses: evidence.witnesses,
    heartbeatMs: evidence.checkpointHeartbeatMs,
    onPush: (result) => metrics.witnessed(result),
  });
  const notifier = await WebhookFeed.open({ ...ports, newId, observer: metrics, webhooks: config.approvals.webhooks });
  return { store, ledger, custody, notifier, exporter: new SessionExport({ ...ports, ledger }) };
}

interface RoadParts {
  readonly ledger: Ledger;
  readonly metrics: Metrics;
  readonly chain: Chain;
  readonly fleet: UpstreamFleet;
  readonly sessions: SessionTable;
}

function openEndpoints(config: GatewayConfig, log: Log, { ledger, metrics, chain, fleet, sessions }: RoadParts) {
  const recordSession: SseParts["recordSession"] = (principal, scope, client) =>
    ledger.recordEvent(principal.tenant, "session", { principal: principal.id, session: scope.id, client });
  const parts: SseParts = {
    identity,
    fleet,
    sessions,
    road: new Road({ chain, log: ledger, observer: metrics, newId }),
    actions: new ActionFactory(Date.now, newId),
    newId,
    metaPassthrough: config.mcpGateway.metaPassthrough,
    body: { bytes: config.limits.bodyBytes, json: jsonBounds(config) },
    recordSession,
    onScopeEnded: (scope, principal) => recordSession(principal, scope, { event: "closed" }),
    onFault: (requestId, error) =>
      log.info({ request_id: requestId, code: error.code, detail: error.loggedDetail }, "request refused"),
  };
  return { endpoint: new McpEndpoint(parts), sse: new SseEndpoint(parts) };
}

function openListener(port: Port, parts: Parts): Promise<Listener> {
  const { config, metrics, log } = parts;
  const app = buildApp(port, handlersOf({ ...parts, health: () => healthOf(parts) }), {
    hostRule: new HostRule(config.listen.allowedHosts, config.listen.allowedOrigins),
    accessRule: new AccessRule(parts.keys, config.mcpGateway.anonymousTenant),
    metrics,
    log,
    newId,
  });
  const numbers = {
    gateway: config.listen.gatewayPort,
    admin: config.listen.adminPort,
    metrics: config.listen.metricsPort,
  };
  const host = port === "gateway" ? config.listen.host : config.listen.adminHost;
  return Listener.open(app, host, numbers[port], config.limits);
}

function healthOf({ life, ledger }: Parts): Health {
  const status = life.stopping ? "stopping" : ledger.writable ? "ok" : "degraded";
  return { status, version: identity.version };
}

async function loadPolicies(config: GatewayConfig): Promise<readonly Policy[]> {
  const packs = await loadPacks(config.policy.packs.map((pack) => ({ ...pack, clock: Date.now })));
  return packs.map(({ policy }) => policy);
}

function recordChange(
  parts: Parts,
  event: "started" | "reloaded",
  policies: readonly PolicyRef[],
  config: GatewayConfig,
): Promise<void> {
  const tenants = new Set(config.keys.map(({ tenant }) => tenant));
  if (config.mcpGateway.anonymousTenant !== null) tenants.add(config.mcpGateway.anonymousTenant);
  const change = { event, policies, configDigest: configDigest(config) };
  return recordConfiguration(parts.ledger, tenants, change, (tenant, { code }) =>
    parts.log.warn({ tenant, code }, "tenant refused"),
  );
}

async function closeParts(parts: Parts): Promise<void> {
  // Together: a session that waits for a connection is waited for no longer than its upstream takes to give it up.
  await Promise.all([parts.sessions.closeAll(), parts.fleet.close()]);
  await parts.notifier.close();
  await parts.custody.stop();
  await parts.ledger.close();
  await parts.store.close();
}

function jsonBounds(config: GatewayConfig): JsonBounds {
  const { jsonDepth, jsonNodes, jsonStringLength } = config.limits;
  return { depth: jsonDepth, nodes: jsonNodes, stringLength: jsonStringLength, reader: "exact" };
}

const random = poolRandom(randomBytes);

function newId(): string {
  return uuidV7(Date.now(), random(10));
}
