import { randomBytes } from "node:crypto";
import { join } from "node:path";
import { Approvals } from "./approval/approvals.ts";
import { configDigest } from "./config/digest.ts";
import type { GatewayConfig } from "./config/gateway-config.ts";
import { Custody } from "./evidence/custody.ts";
import { readEvents } from "./evidence/event-reader.ts";
import { openKeyStores } from "./evidence/key-store.ts";
import { Ledger } from "./evidence/ledger.ts";
import { SessionExport } from "./evidence/session-export.ts";
import type { PluginPool } from "./extension/plugin-pool.ts";
import { KeyRing } from "./identity/key-ring.ts";
import { ActionFactory } from "./ingress/mcp/action-factory.ts";
import { McpEndpoint } from "./ingress/mcp/endpoint.ts";
import { Hold } from "./ingress/mcp/hold.ts";
import { InFlight } from "./ingress/mcp/in-flight.ts";
import { SessionTable } from "./ingress/mcp/session-table.ts";
import { SseEndpoint, type SseParts } from "./ingress/mcp/sse-endpoint.ts";
import { GatewayError } from "./kernel/error.ts";
import { poolRandom } from "./kernel/random-pool.ts";
import type { JsonBounds } from "./kernel/strict-json.ts";
import { uuidV7 } from "./kernel/uuid.ts";
import { WebhookFeed } from "./notify/feed.ts";
import type { Log } from "./observe/log.ts";
import { Metrics } from "./observe/metrics.ts";
import { noticeOf } from "./pipeline/approval-notice.ts";
import type { LoadedExtension } from "./pipeline/extension-record.ts";
import { Road } from "./pipeline/road.ts";
import { openPolicies } from "./policies.ts";
import { Chain } from "./policy/chain.ts";
import type { KillSwitch } from "./session/kill-switch.ts";
import type { ReviewFlood } from "./session/review-flood.ts";
import { openSessionControl } from "./session/session-control.ts";
import { lockWatch } from "./store/lock.ts";
import { openStore, type Store } from "./store/open.ts";
import { UpstreamFleet } from "./upstream/fleet.ts";

/** What the gateway calls itself towards clients and upstreams. */
export const identity = { name: "agent-governance-gateway", version: "0.1.0" } as const;

/** The parts of a running gateway. */
export interface Parts {
  readonly config: GatewayConfig;
  readonly log: Log;
  readonly metrics: Metrics;
  readonly store: Store;
  readonly ledger: Ledger;
  readonly custody: Custody;
  readonly notifier: WebhookFeed;
  readonly exporter: SessionExport;
  readonly approvals: Approvals;
  readonly killSwitch: KillSwitch;
  readonly keys: KeyRing;
  readonly chain: Chain;
  readonly pluginPool: PluginPool;
  /** In force when the gateway started. */
  readonly extensions: readonly LoadedExtension[];
  readonly fleet: UpstreamFleet;
  readonly sessions: SessionTable;
  readonly endpoint: McpEndpoint;
  readonly sse: SseEndpoint;
  readonly life: { stopping: boolean };
}

/** Opens every part but the ports. Rejects with the GatewayError that says why not. */
export async function openParts(config: GatewayConfig, log: Log): Promise<Parts> {
  const metrics = new Metrics();
  const evidence = await openEvidence(config, log, metrics);
  const opening = openPolicies(config, { ...evidence, log, metrics });
  const { policies, extensions, pluginPool } = await opening.catch(async (cause) => {
    await closeEvidence(evidence);
    throw cause;
  });
  const fleet = openFleet(config, log);
  const inFlight = new InFlight();
  const control = await openSessionControl({
    ...evidence,
    reviewFlood: config.sessions.reviewFlood,
    clock: Date.now,
    elapsedMs: () => performance.now(),
    events: readEvents,
    onKilled: ({ session, reason }) => {
      metrics.sessionKilled(reason);
      log.warn({ session, reason }, "session stopped");
      inFlight.cancel(session, new GatewayError("SESSION_KILLED"));
    },
  });
  const chain = new Chain({
    policies: [control.killSwitch, ...policies],
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
  const approvals = await openApprovals(config, log, metrics, evidence);
  const endpoints = openEndpoints(config, log, {
    ...control,
    inFlight,
    ledger: evidence.ledger,
    approvals,
    metrics,
    chain,
    fleet,
    sessions,
  });
  const keys = new KeyRing(config.keys);
  return {
    config,
    log,
    metrics,
    ...evidence,
    approvals,
    killSwitch: control.killSwitch,
    keys,
    chain,
    pluginPool,
    extensions,
    fleet,
    sessions,
    ...endpoints,
    life: { stopping: false },
  };
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

type EvidenceParts = Pick<Parts, "store" | "ledger" | "custody" | "notifier" | "exporter">;

async function openEvidence(config: GatewayConfig, log: Log, metrics: Metrics): Promise<EvidenceParts> {
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

function openApprovals(
  { approvals }: GatewayConfig,
  log: Log,
  metrics: Metrics,
  { store, ledger, notifier }: Pick<Parts, "store" | "ledger" | "notifier">,
): Promise<Approvals> {
  return Approvals.open({
    store,
    journal: ledger.approvals,
    limits: approvals,
    rule: approvals,
    clock: Date.now,
    monotonicMs: () => performance.now(),
    tenants: ledger.status().flatMap(({ tenant, state }) => (state === "ready" ? [tenant] : [])),
    newId,
    onChange: (approval) => {
      metrics.approval(approval.state);
      const notice = noticeOf(approval, new Date().toISOString());
      if (notice !== undefined) notifier.tell(notice);
    },
    onWarning: (message, fields) => log.warn(fields, message),
  });
}

interface RoadParts extends Pick<Parts, "ledger" | "approvals" | "metrics" | "chain" | "fleet" | "sessions"> {
  readonly killSwitch: KillSwitch;
  readonly reviews: ReviewFlood;
  readonly inFlight: InFlight;
}

function openEndpoints(config: GatewayConfig, log: Log, open: RoadParts): Pick<Parts, "endpoint" | "sse"> {
  const { ledger, approvals, metrics, chain, killSwitch, reviews, fleet, sessions, inFlight } = open;
  const recordSession: SseParts["recordSession"] = (principal, scope, client) =>
    ledger.recordEvent(principal.tenant, "session", { principal: principal.id, session: scope.id, client });
  const parts: SseParts = {
    identity,
    fleet,
    sessions,
    road: new Road({ chain, killSwitch, reviews, log: ledger, desk: approvals.queue, observer: metrics, newId }),
    inFlight,
    actions: new ActionFactory(Date.now, newId),
    hold: new Hold({ ...config.approvals, book: approvals.book, newId, onCount: (n) => metrics.heldCalls(n) }),
    newId,
    metaPassthrough: config.mcpGateway.metaPassthrough,
    body: { bytes: config.limits.bodyBytes, json: jsonBounds(config) },
    recordSession,
    onScopeEnded: async (scope, principal) => {
      // What was approved for a live connection dies with it, whether or not its end can be recorded.
      await approvals.expiry.endSession(principal.tenant, scope.id);
      await recordSession(principal, scope, { event: "closed" });
    },
    onFault: (requestId, error) =>
      log.info({ request_id: requestId, code: error.code, detail: error.loggedDetail }, "request refused"),
  };
  return { endpoint: new McpEndpoint(parts), sse: new SseEndpoint(parts) };
}

/** Closes upstreams, evidence and state, in this order. */
export async function closeParts(parts: Parts): Promise<void> {
  // Together: a session that waits for a connection is waited for no longer than its upstream takes to give it up.
  await Promise.all([parts.sessions.closeAll(), parts.fleet.close()]);
  parts.killSwitch.close();
  await parts.approvals.close();
  await parts.pluginPool.close();
  await closeEvidence(parts);
}

async function closeEvidence({ notifier, custody, ledger, store }: EvidenceParts): Promise<void> {
  await notifier.close();
  await custody.stop();
  await ledger.close();
  await store.close();
}

function jsonBounds(config: GatewayConfig): JsonBounds {
  const { jsonDepth, jsonNodes, jsonStringLength } = config.limits;
  return { depth: jsonDepth, nodes: jsonNodes, stringLength: jsonStringLength, reader: "exact" };
}

const random = poolRandom(randomBytes);

/** UUIDv7. */
export function newId(): string {
  return uuidV7(Date.now(), random(10));
}
