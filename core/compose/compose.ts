import { randomBytes } from "node:crypto";
import { join } from "node:path";
import type { Participant } from "../action/participant.ts";
import type { Policy } from "../action/policy.ts";
import { noTracer } from "../action/trace.ts";
import type { Approvals } from "../approval/approvals.ts";
import { pruneApprovals } from "../approval/history.ts";
import { approvalParticipant } from "../approval/participant.ts";
import { type Backups, openBackups } from "../backup/backups.ts";
import { configDigest } from "../config/digest.ts";
import type { GatewayConfig } from "../config/gateway-config.ts";
import { requireOptional } from "../config/optional-package.ts";
import type { DefinitionReviews } from "../definition/definition-reviews.ts";
import type { DefinitionStore } from "../definition/definition-store.ts";
import { EgressGuard } from "../egress/egress-guard.ts";
import { SessionExport } from "../evidence/bundle/session-export.ts";
import { readEvents } from "../evidence/chain/session-record.ts";
import { EvidenceJobs } from "../evidence/evidence-jobs.ts";
import { openKeyStores } from "../evidence/key/key-folder.ts";
import { Ledger } from "../evidence/ledger.ts";
import { RetentionSchedule } from "../evidence/retention-schedule.ts";
import { WitnessPublisher } from "../evidence/witness/witness-publisher.ts";
import type { Explainer } from "../explain/explainer.ts";
import { SessionTable } from "../gateway/mcp/session-table.ts";
import { FairShare } from "../http/fair-share.ts";
import { LoopLoad } from "../http/loop-time.ts";
import { RefusedAttempts } from "../http/refused-attempt.ts";
import { type KillSwitch, killedError, killParticipant } from "../kill/kill-switch.ts";
import { type DriftPolicy, manifestParticipant, openManifestControl } from "../manifest/manifest-control.ts";
import type { ManifestStore } from "../manifest/manifest-store.ts";
import type { TaskBinding } from "../manifest/task-binding.ts";
import { WebhookNotifier } from "../notify/webhook-notifier.ts";
import { limitWarnings } from "../observe/limited-warning.ts";
import { LiveFeed } from "../observe/live-feed.ts";
import type { Log } from "../observe/log.ts";
import { Metrics } from "../observe/metrics.ts";
import type { Telemetry } from "../observe/otlp/telemetry.ts";
import { RecentActions, recentLimits } from "../observe/recent-action.ts";
import type { PluginPool } from "../plugin/plugin-pool.ts";
import { PolicyChain } from "../policy/chain.ts";
import type { LoadedExtension } from "../policy/extension-load.ts";
import { ProviderFleet } from "../provider/fleet.ts";
import { InFlight } from "../road/in-flight.ts";
import { openSessionControl } from "../session/session-control.ts";
import type { SessionDirectory } from "../session/session-directory.ts";
import type { SessionSweep } from "../session/session-sweep.ts";
import type { SessionWatch } from "../session/session-watch.ts";
import { diskSpace } from "../store/folder.ts";
import { lockWatch, openStore, type Store } from "../store/open.ts";
import type { Tickets } from "../ticket/tickets.ts";
import { UpstreamFleet } from "../upstream/fleet.ts";
import { UsageMeter } from "../usage/meter.ts";
import { Tokenizer } from "../usage/tokenizer.ts";
import { type AccessParts, openAccess } from "./access.ts";
import { type Endpoints, openEndpoints } from "./endpoints.ts";
import { evidenceRules } from "./evidence-rules.ts";
import { elapsedMs, identity, newId, replyJsonBounds } from "./identity.ts";
import { openApprovals, openDefinitions, openTickets } from "./permits.ts";
import { openExplainer, openPolicies } from "./policies.ts";

/** The parts of a running gateway. */
export interface Parts extends Endpoints, AccessParts {
  readonly config: GatewayConfig;
  readonly log: Log;
  readonly metrics: Metrics;
  readonly egress: EgressGuard;
  readonly store: Store;
  readonly ledger: Ledger;
  readonly witnessPublisher: WitnessPublisher;
  readonly notifier: WebhookNotifier;
  readonly exporter: SessionExport;
  readonly evidenceJobs: EvidenceJobs;
  readonly retentionSchedule: RetentionSchedule;
  /** Null where none are asked for. */
  readonly backups: Backups | null;
  readonly approvals: Approvals;
  readonly killSwitch: KillSwitch;
  readonly sessionWatch: SessionWatch;
  readonly tickets: Tickets;
  readonly sessionDirectory: SessionDirectory;
  readonly sessionSweep: SessionSweep;
  readonly manifests: ManifestStore;
  readonly driftPolicy: DriftPolicy;
  readonly taskBinding: TaskBinding;
  readonly attempts: RefusedAttempts;
  /** The features that take part in every decision, in their order. */
  readonly participants: readonly Participant[];
  readonly chain: PolicyChain;
  readonly pluginPool: PluginPool;
  /** In force when the gateway started. */
  readonly extensions: readonly LoadedExtension[];
  readonly fleet: UpstreamFleet;
  readonly definitions: DefinitionStore;
  readonly definitionReviews: DefinitionReviews;
  readonly providers: ProviderFleet;
  readonly meter: UsageMeter;
  readonly fairShare: FairShare;
  readonly sessions: SessionTable;
  readonly live: LiveFeed;
  readonly collector: Telemetry;
  readonly explainer: Explainer;
  readonly life: { stopping: boolean };
}

/** Opens every part but the ports. Rejects with the GatewayError that says why not. */
export async function openParts(config: GatewayConfig, log: Log): Promise<Parts> {
  const metrics = new Metrics(identity.version, config.telemetry.exemplars);
  const load = new LoopLoad(elapsedMs);
  const fairShare = new FairShare({
    ...config.limits,
    busyPercent: config.limits.cpuBusyPercent,
    loadPercent: () => (pluginPool.isBusy ? 100 : load.measure().percent),
    mainThread: load,
    elapsedMs,
    onRefused: (limit) => metrics.shareRefused(limit),
  });
  const egress = openEgress(config, log);
  const evidence = await openEvidence(config, log, metrics, fairShare, egress);
  const opening = openPolicies(config, { ...evidence, log, metrics, egress, fairShare });
  const { policies, extensions, pluginPool } = await opening.catch(async (cause) => {
    await closeEvidence(evidence);
    throw cause;
  });
  const fleet = openFleet(config, log, egress);
  const providers = openProviders(config, log, egress);
  // Its tables take a moment, which no request should.
  if (config.modelGateway.routes.length > 0) await Tokenizer.load();
  const inFlight = new InFlight();
  const live = new LiveFeed({ clock: Date.now, elapsedMs, showLabels: config.evidence.storeLabels });
  const time = { clock: Date.now, elapsedMs };
  const control = await openSessionControl({
    ...evidence,
    ...config.sessions,
    observer: metrics.sessions,
    hasUntrusted: config.upstreams.some(({ untrusted }) => untrusted.length > 0),
    isExpected: (tenant, task, value) => plans.manifests.find(tenant, task)?.plan.expects(value) ?? false,
    onSweepFailed: ({ message }) => log.warn({ cause: message }, "session_sweep_failed"),
    ...time,
    events: readEvents,
    onKilled: (tenant, kill) => {
      const { scope, subject, reason } = kill;
      inFlight.cancel(tenant, kill, killedError(tenant, kill), (session, principal) =>
        control.sessionWatch.isStoppedWith(tenant, session, principal),
      );
      metrics.sessions.killed(scope, reason);
      log.warn({ tenant, scope, subject, reason }, "kill_switch_engaged");
      live.publish(tenant, "risk", () => ({ [scope]: subject, killed: reason }));
    },
  });
  const plans = await openManifestControl({
    ...evidence,
    ...config.sessions,
    ...time,
    hasActed: (...session) => control.sessionWatch.hasActed(...session),
  });
  const sessions = new SessionTable({
    maxSessions: config.mcpGateway.maxSessions,
    shares: config.limits,
    idleMs: config.mcpGateway.sessionIdleMs,
    clock: Date.now,
    newId: () => randomBytes(32).toString("base64url"),
    onCount: (count) => metrics.mcpSessions(count),
  });
  const approvals = await openApprovals(config, { ...evidence, log, metrics, live });
  const onWarning = (message: string, fields: object): void => log.warn(fields, message);
  const definitions = openDefinitions(config, { ...evidence, log, fleet, approvals });
  const meter = await UsageMeter.open({ ...time, ...evidence, config: config.usage, observer: metrics, onWarning });
  metrics.state.watch({
    evidence: () => ({ writable: evidence.ledger.writable, chains: evidence.ledger.status() }),
    approvals: () => approvals.status(),
    upstreams: () => fleet.health(),
    providers: () => providers.health(),
    disk: async () => (config.state.enabled ? diskSpace(config.dataDir) : undefined),
  });
  const access = await openAccess(config, log, egress, metrics);
  const tickets = await openTickets(config, { ...evidence, log, metrics, keyRing: access.keys });
  const participants: readonly Participant[] = [
    approvalParticipant(approvals.queue),
    killParticipant(control.killSwitch),
    control.sessionWatch,
    tickets.verifier,
    manifestParticipant(plans.driftPolicy),
  ];
  const chain = new PolicyChain({
    policies: [...policiesOf(participants), ...policies],
    defaultDecision: config.policy.defaultDecision,
    deadlineMs: config.policy.deadlineMs,
    newId,
    elapsedMs,
  });
  const collector = await openCollector(config, log, metrics, egress);
  const recent = new RecentActions(recentLimits(config.evidence));
  const explainer = openExplainer(config, { ...evidence, chain, approvals, recent });
  const endpoints = openEndpoints(config, log, {
    challenge: access.challenge,
    tracer: collector.tracer,
    participants,
    tickets,
    taskBinding: plans.taskBinding,
    inFlight,
    ledger: evidence.ledger,
    approvals,
    metrics,
    chain,
    fleet,
    ...definitions,
    providers,
    sessions,
    meter,
    fairShare,
    live,
    recent,
  });
  return {
    config,
    log,
    metrics,
    egress,
    ...evidence,
    approvals,
    ...control,
    tickets,
    ...plans,
    ...access,
    attempts: new RefusedAttempts({ ...evidence, onWarning }),
    participants,
    chain,
    pluginPool,
    extensions,
    fleet,
    ...definitions,
    providers,
    meter,
    fairShare,
    sessions,
    live,
    explainer,
    ...endpoints,
    collector,
    life: { stopping: false },
  };
}

type EvidenceParts = Pick<
  Parts,
  "store" | "ledger" | "evidenceJobs" | "retentionSchedule" | "witnessPublisher" | "notifier" | "exporter" | "backups"
>;

async function openEvidence(
  config: GatewayConfig,
  log: Log,
  metrics: Metrics,
  fairShare: FairShare,
  egress: EgressGuard,
): Promise<EvidenceParts> {
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
    recordRules: evidenceRules,
    observer: metrics.evidence,
    pause: ({ tenant, principal: { id } }) => fairShare.pause({ tenant, id }),
    writerId: newId(),
    configDigest: configDigest(config),
  });
  // Before anything runs by itself: a folder that may not be used ends the start.
  const stateDir = state.enabled ? join(dataDir, "state") : null;
  const gateway = identity.version;
  const backups = await openBackups({ ...ports, ...config.resilience, ledger, dataDir, stateDir, gateway });
  const witnessPublisher = await WitnessPublisher.start({
    ...ports,
    ledger,
    witnesses: evidence.witnesses,
    heartbeatMs: evidence.checkpointHeartbeatMs,
    egress,
    onPush: (result) => metrics.witnessed(result),
  });
  const notifier = await WebhookNotifier.open({
    ...ports,
    newId,
    observer: metrics,
    webhooks: config.approvals.webhooks,
    egress,
  });
  const exporter = new SessionExport({ ...ports, ledger });
  const journal = ledger.approvals;
  const forget = (tenant: string, firstKept: number) => pruneApprovals({ store, journal }, tenant, firstKept);
  const evidenceJobs = new EvidenceJobs({ ...ports, ledger, forget, newId, elapsedMs });
  const retentionSchedule = new RetentionSchedule({
    ...ports,
    ...evidence,
    jobs: evidenceJobs,
    status: () => ledger.status(),
    elapsedMs,
  });
  return { store, ledger, evidenceJobs, retentionSchedule, witnessPublisher, notifier, exporter, backups };
}

/** The policies of the participants: evaluated before packs and plugins, in the order of the list. */
export function policiesOf(participants: readonly Participant[]): readonly Policy[] {
  return participants.flatMap(({ policy }) => policy ?? []);
}

/** Closes upstreams, evidence and state, in this order. */
export async function closeParts(parts: Parts): Promise<void> {
  // Together: a session that waits for a connection is waited for no longer than its upstream takes to give it up.
  await Promise.all([parts.sessions.closeAll(), parts.fleet.close(), parts.providers.close()]);
  await parts.sessionSweep.close();
  parts.killSwitch.close();
  await parts.tickets.close();
  await parts.approvals.close();
  await parts.pluginPool.close();
  await parts.meter.close();
  await parts.attempts.close();
  await parts.collector.close();
  await closeEvidence(parts);
}

async function closeEvidence(parts: EvidenceParts): Promise<void> {
  const { backups, retentionSchedule, evidenceJobs, notifier, witnessPublisher, ledger, store } = parts;
  await backups?.close();
  await retentionSchedule.close();
  await evidenceJobs.close();
  await notifier.close();
  await witnessPublisher.stop();
  await ledger.close();
  await store.close();
}

/** The way out that every client of the gateway takes. */
function openEgress({ egress }: GatewayConfig, log: Log): EgressGuard {
  const warn = limitWarnings((message, fields) => log.warn(fields, message));
  return new EgressGuard({ ...egress, onRefused: ({ message }) => warn("egress_refused", { reason: message }) });
}

/** The MCP servers that a configuration names. */
function openFleet(config: GatewayConfig, log: Log, egress: EgressGuard): UpstreamFleet {
  return new UpstreamFleet({
    configs: config.upstreams,
    replyBounds: replyJsonBounds(config),
    replyBytes: config.limits.upstreamReplyBytes,
    shares: config.limits,
    egress,
    clock: Date.now,
    gatewayInfo: identity,
    onEvent: ({ kind, ...fields }) => log.info(fields, kind),
  });
}

/** The collector that it names. Without one nothing of OpenTelemetry is loaded. */
async function openCollector(
  { telemetry, providers }: GatewayConfig,
  log: Log,
  metrics: Metrics,
  egress: EgressGuard,
): Promise<Telemetry> {
  const { endpoint } = telemetry;
  if (endpoint === null) return { tracer: noTracer, close: () => Promise.resolve() };
  requireOptional("telemetry", "`telemetry.endpoint`", "CONFIG_INVALID");
  const { openTelemetry } = await import("../observe/otlp/telemetry.ts");
  const warn = limitWarnings((message, fields) => log.warn(fields, message));
  return openTelemetry({
    target: { ...telemetry, endpoint },
    identity,
    providers: new Map(providers.map(({ name, type }) => [name, type])),
    metrics: metrics.telemetry,
    readMetrics: () => metrics.read(),
    egress,
    clock: Date.now,
    random: randomBytes,
    onFault: (fault) => warn("telemetry_export_failed", { fault }),
  });
}

/** The providers of models that it names. */
function openProviders(config: GatewayConfig, log: Log, egress: EgressGuard): ProviderFleet {
  return new ProviderFleet({
    providers: config.providers,
    routes: config.modelGateway.routes,
    dropHints: config.modelGateway.dropHints,
    egress,
    bounds: { bytes: config.limits.upstreamReplyBytes, json: replyJsonBounds(config) },
    clock: Date.now,
    elapsedMs,
    onEvent: ({ kind, ...fields }) => log.info(fields, kind),
  });
}
