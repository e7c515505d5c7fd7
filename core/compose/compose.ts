import { randomBytes } from "node:crypto";
import { join } from "node:path";
import type { GatewayError } from "../action/error.ts";
import type { JsonObject } from "../action/json.ts";
import type { Participant } from "../action/participant.ts";
import type { Policy } from "../action/policy.ts";
import type { Approvals } from "../approval/approvals.ts";
import { pruneApprovals } from "../approval/history.ts";
import { approvalParticipant } from "../approval/participant.ts";
import { expireRestored } from "../approval/restore.ts";
import { type Backups, openBackups } from "../backup/backups.ts";
import { configDigest } from "../config/digest.ts";
import type { GatewayConfig } from "../config/gateway-config.ts";
import type { DefinitionReviews } from "../definition/definition-reviews.ts";
import type { DefinitionStore } from "../definition/definition-store.ts";
import type { EgressGuard } from "../egress/egress-guard.ts";
import { SessionExport } from "../evidence/bundle/session-export.ts";
import { BatchThread } from "../evidence/chain/batch-thread.ts";
import { OuterMark } from "../evidence/chain/outer-mark.ts";
import { readEvents } from "../evidence/chain/session-record.ts";
import { EvidenceJobs } from "../evidence/evidence-jobs.ts";
import { openKeyStores } from "../evidence/key/key-folder.ts";
import { Ledger } from "../evidence/ledger.ts";
import { RetentionSchedule } from "../evidence/retention-schedule.ts";
import { recordForTenants } from "../evidence/tenant-record.ts";
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
import { ClockWatch, GatewayClock } from "../observe/gateway-clock.ts";
import { LiveFeed } from "../observe/live-feed.ts";
import type { Log } from "../observe/log.ts";
import { Metrics } from "../observe/metrics.ts";
import type { Telemetry } from "../observe/otlp/telemetry.ts";
import { RecentActions, recentLimits } from "../observe/recent-action.ts";
import type { PluginPool } from "../plugin/plugin-pool.ts";
import { PolicyChain } from "../policy/chain.ts";
import type { LoadedExtension } from "../policy/extension-load.ts";
import type { ProviderFleet } from "../provider/fleet.ts";
import type { Ownership } from "../replica/replica.ts";
import type { ReportFeeder } from "../report/feeder.ts";
import { InFlight } from "../road/in-flight.ts";
import { openSessionControl } from "../session/session-control.ts";
import type { SessionDirectory } from "../session/session-directory.ts";
import { SessionNames } from "../session/session-name.ts";
import type { SessionSweep } from "../session/session-sweep.ts";
import type { SessionWatch } from "../session/session-watch.ts";
import { diskSpace } from "../store/folder.ts";
import { openStore, type Store } from "../store/open.ts";
import { lockWatch } from "../store/split-level.ts";
import type { Tickets } from "../ticket/tickets.ts";
import type { UpstreamFleet } from "../upstream/fleet.ts";
import { UsageMeter } from "../usage/meter.ts";
import { Tokenizer } from "../usage/tokenizer.ts";
import { type AccessParts, openAccess } from "./access.ts";
import { type Endpoints, openEndpoints } from "./endpoints.ts";
import { evidenceRules } from "./evidence-rules.ts";
import { elapsedMs, identity, machineTime, newId } from "./identity.ts";
import { openCollector, openEgress, openFleet, openProviders } from "./outbound.ts";
import { openApprovals, openDefinitions, openTickets } from "./permits.ts";
import { openExplainer, openPolicies } from "./policies.ts";
import { openReports } from "./reports.ts";

/** The parts of a running gateway. */
export interface Parts extends Endpoints, AccessParts {
  readonly config: GatewayConfig;
  readonly log: Log;
  readonly clockWatch: ClockWatch;
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
  readonly sessionNames: SessionNames;
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
  /** Null where no report database is configured. */
  readonly reportFeeder: ReportFeeder | null;
  readonly life: { stopping: boolean };
}

/** Opens every part but the ports; `owned`: as one of several replicas. Rejects with the GatewayError that says why not. */
export async function openParts(config: GatewayConfig, log: Log, owned: Ownership | null = null): Promise<Parts> {
  const clock = new GatewayClock(machineTime);
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
  const evidence = await openEvidence(config, { log, clock, metrics, fairShare, egress, owned });
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
  const live = new LiveFeed({ clock: Date.now, elapsedMs, showLabels: config.evidence.storeLabels, log });
  const time = { clock: clock.now, elapsedMs };
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
    onReleased: (tenant, { scope, subject }) =>
      live.publish(tenant, "risk", () => ({ [scope]: subject, killed: null })),
  });
  const plans = await openManifestControl({
    ...evidence,
    ...config.sessions,
    clock: Date.now,
    hasActed: (...session) => control.sessionWatch.hasActed(...session),
  });
  const sessions = new SessionTable({
    maxSessions: config.mcpGateway.maxSessions,
    shares: config.limits,
    idleMs: config.mcpGateway.sessionIdleMs,
    elapsedMs,
    newId: () => randomBytes(32).toString("base64url"),
    onCount: (count) => metrics.mcpSessions(count),
  });
  const approvals = await openApprovals(config, { ...evidence, log, clock, metrics, live });
  const onWarning = (message: string, fields: object): void => log.warn(fields, message);
  const definitions = openDefinitions(config, { ...evidence, log, fleet, approvals });
  const meter = await UsageMeter.open({ ...time, ...evidence, config: config.usage, observer: metrics, onWarning });
  const reportFeeder = await openReports(config, { ...evidence, log, metrics, meter, clock });
  metrics.state.watch({
    evidence: () => ({ writable: evidence.ledger.writable, chains: evidence.ledger.status() }),
    approvals: () => approvals.status(),
    upstreams: () => fleet.health(),
    providers: () => providers.health(),
    disk: async () => (config.state.enabled ? diskSpace(config.dataDir) : undefined),
  });
  const access = await openAccess(config, log, egress, metrics);
  const tickets = await openTickets(config, { ...evidence, log, clock, metrics, owned, keyRing: access.keys });
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
    pause: ({ tenant, principal: { id } }) => fairShare.pause({ tenant, id }),
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
    clockWatch: watchClock(clock, log, evidence.ledger),
    metrics,
    egress,
    ...evidence,
    approvals,
    ...control,
    sessionNames: new SessionNames({ ...evidence, ...access }),
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
    reportFeeder,
    ...endpoints,
    collector,
    life: { stopping: false },
  };
}

const chainWorker = new URL("./chain-worker.js", import.meta.url);
/** A shorter chain is read before a thread has begun. */
const minThreadRecords = 4_096;

type EvidenceParts = Pick<
  Parts,
  "store" | "ledger" | "evidenceJobs" | "retentionSchedule" | "witnessPublisher" | "notifier" | "exporter" | "backups"
>;

interface EvidenceNeeds extends Pick<Parts, "log" | "metrics" | "fairShare" | "egress"> {
  readonly clock: GatewayClock;
  readonly owned: Ownership | null;
}

async function openEvidence(
  config: GatewayConfig,
  { log, clock, metrics, fairShare, egress, owned }: EvidenceNeeds,
): Promise<EvidenceParts> {
  const { dataDir, state, evidence } = config;
  const outerMark = state.mark === null ? null : await OuterMark.open(state.mark, dataDir);
  const onMoved = (entries: number): void => log.info({ entries }, "store_format_moved");
  const store = await (owned?.openStore(onMoved) ?? openStore({ dir: dataDir, enabled: state.enabled, onMoved }));
  const holdsLock = lockWatch(store, dataDir, state.enabled);
  const ports = {
    store,
    ...openKeyStores(state.enabled ? join(dataDir, "keys") : null, randomBytes, owned?.shareKey),
    clock: Date.now,
    random: randomBytes,
    onWarning: (message: string, fields: object): void => log.warn(fields, message),
  };
  const ledger = await Ledger.open({
    ...ports,
    holdsStore: owned === null ? holdsLock : () => holdsLock() && owned.isHeld(),
    highWater: owned?.marks,
    highWaterPath: state.enabled ? join(dataDir, "high-water") : null,
    outerMark,
    fieldPolicy: evidence,
    recordRules: evidenceRules,
    batchThread: new BatchThread(),
    readingThread: { program: chainWorker, minRecords: minThreadRecords },
    observer: metrics.evidence,
    pause: ({ tenant, principal: { id } }) => fairShare.pause({ tenant, id }),
    stored: ({ tenant, principal: { id } }, length) => fairShare.spendStored({ tenant, id }, length),
    writerId: newId(),
    configDigest: configDigest(config),
  });
  if (outerMark !== null) await endUnmarked(outerMark, { store, ledger, log });
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
  const evidenceJobs = new EvidenceJobs({ ...ports, stateDir, ledger, forget, newId, elapsedMs });
  const retentionSchedule = new RetentionSchedule({
    ...ports,
    ...evidence,
    jobs: evidenceJobs,
    status: () => ledger.status(),
    clock: clock.earliest,
    elapsedMs,
  });
  return { store, ledger, evidenceJobs, retentionSchedule, witnessPublisher, notifier, exporter, backups };
}

/** Ends the approvals of chains that have no mark yet: the data folder may be an older copy. Then marks them. */
async function endUnmarked(
  outerMark: OuterMark,
  { store, ledger, log }: Pick<Parts, "store" | "ledger" | "log">,
): Promise<void> {
  const tenants = ledger.readyTenants().filter((tenant) => outerMark.unmarked.has(tenant));
  const expired = await expireRestored({ store, journal: ledger.approvals, clock: Date.now }, tenants);
  if (tenants.length > 0) log.warn({ tenants: tenants.length, approvals_ended: expired }, "state_mark_created");
  await ledger.adoptMarks();
}

/** The policies of the participants: evaluated before packs and plugins, in the order of the list. */
export function policiesOf(participants: readonly Participant[]): readonly Policy[] {
  return participants.flatMap(({ policy }) => policy ?? []);
}

/** Closes upstreams, evidence and state, in this order. */
export async function closeParts(parts: Parts): Promise<void> {
  // Together: a session that waits for a connection is waited for no longer than its upstream takes to give it up.
  await Promise.all([parts.sessions.closeAll(), parts.fleet.close(), parts.providers.close()]);
  await parts.clockWatch.close();
  await parts.sessionSweep.close();
  parts.killSwitch.close();
  await parts.tickets.close();
  await parts.approvals.close();
  await parts.pluginPool.close();
  await parts.reportFeeder?.close();
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

/** Has jumps of the wall clock put on the record of every tenant. */
function watchClock(clock: GatewayClock, log: Log, ledger: Ledger): ClockWatch {
  const warn = (tenant: string, { code }: GatewayError): void => log.warn({ tenant, code }, "tenant_refused");
  const record = (detail: JsonObject): Promise<void> => {
    return recordForTenants(ledger, new Set(ledger.readyTenants()), [{ kind: "clock", detail }], warn);
  };
  return new ClockWatch({ clock, log, record });
}
