import type { Context } from "koa";
import { GatewayError } from "../action/error.ts";
import type { ActivePolicy } from "../action/policy.ts";
import type { Principal } from "../action/principal.ts";
import { approvalHandlers } from "../approval/operation.ts";
import type { ApprovalParts } from "../approval/view.ts";
import { type BackupParts, backupHandlers } from "../backup/operation.ts";
import type { GatewayConfig } from "../config/gateway-config.ts";
import type { SessionExport } from "../evidence/bundle/session-export.ts";
import { type EvidenceRouteId, sendBundle, sendReport, showSession } from "../evidence/operation.ts";
import type { WitnessPublisher } from "../evidence/witness/witness-publisher.ts";
import { explanationHandlers, type PolicyTestParts, policyTestHandlers } from "../explain/operation.ts";
import type { McpEndpoint } from "../gateway/mcp/endpoint.ts";
import type { SseEndpoint } from "../gateway/mcp/sse.ts";
import type { ModelEndpoint } from "../gateway/model/endpoint.ts";
import type { Handlers } from "../http/app.ts";
import { type Health, healthHandler } from "../http/health.ts";
import type { RefusedAttempts } from "../http/refused-attempt.ts";
import { type KillAuthorityParts, sessionKillHandlers } from "../kill/operation.ts";
import { type ManifestParts, manifestHandlers } from "../manifest/operation.ts";
import { listDeadLetters, redeliver, type WebhookParts } from "../notify/operation.ts";
import type { Metrics } from "../observe/metrics.ts";
import type { ShadowLog } from "../observe/shadow-log.ts";
import type { AdminHandlers } from "../operation/operation.ts";
import type { PolicyChain } from "../policy/chain.ts";
import { pluginsOf } from "../policy/operation.ts";
import type { ProviderFleet } from "../provider/fleet.ts";
import { showProvider } from "../provider/view.ts";
import { type SessionAdminParts, sessionAdminHandlers } from "../session/operation.ts";
import { type TicketParts, ticketHandlers } from "../ticket/operation.ts";
import type { UpstreamFleet } from "../upstream/fleet.ts";
import type { UsageMeter } from "../usage/meter.ts";
import { showUsage } from "../usage/operation.ts";
import { documentHandlers } from "./api/document.ts";
import { type DashboardPageParts, dashboardHandlers } from "./console/page.ts";
import { graphqlHandlers } from "./graphql/endpoint.ts";

interface HandlerParts
  extends Omit<AdminParts, "policies" | "shadowLog">,
    ApprovalParts,
    KillAuthorityParts,
    SessionAdminParts,
    ManifestParts,
    PolicyTestParts,
    TicketParts,
    BackupParts,
    Omit<DashboardPageParts, "policies"> {
  readonly config: GatewayConfig;
  readonly endpoint: McpEndpoint;
  readonly sse: SseEndpoint;
  readonly model: ModelEndpoint;
  readonly chain: PolicyChain;
  readonly metrics: Metrics;
  readonly attempts: RefusedAttempts;
  readonly health: () => Health;
}

/** What answers each route of the table. */
export function handlersOf(parts: HandlerParts): Handlers {
  const health = healthHandler(parts.health);
  const scrape = metricsHandler(parts.metrics);
  return {
    ...adminHandlers({ ...parts, policies: () => parts.chain.active, shadowLog: parts.metrics.shadowLog }),
    ...approvalHandlers(parts),
    ...sessionKillHandlers(parts),
    ...manifestHandlers(parts),
    ...policyTestHandlers(parts),
    ...explanationHandlers(parts),
    ...graphqlHandlers({ ...parts, policies: () => parts.chain.active }),
    ...ticketHandlers(parts),
    ...sessionAdminHandlers(parts),
    ...backupHandlers(parts),
    ...documentHandlers(() => parts.health().version),
    ...dashboardHandlers({ ...parts, policies: () => parts.chain.active }),
    "mcp.post": (ctx, caller, requestId) => parts.endpoint.post(ctx, caller, requestId),
    "mcp.stream": (ctx, caller) => parts.endpoint.stream(ctx, caller),
    "mcp.end": (ctx, caller) => parts.endpoint.end(ctx, caller),
    "sse.open": (ctx, caller) => parts.sse.open(ctx, caller),
    "sse.post": (ctx, caller, requestId) => parts.sse.post(ctx, caller, requestId),
    "model.chat": (ctx, caller, requestId) => parts.model.chat(ctx, caller, requestId),
    "model.messages": (ctx, caller, requestId) => parts.model.messages(ctx, caller, requestId),
    "model.count": (ctx, caller) => parts.model.countTokens(ctx, caller),
    "model.list": (ctx) => parts.model.models(ctx),
    "live.open": refusePlain,
    "dashboard.live": refusePlain,
    "gateway.health": health,
    "admin.health": health,
    "admin.metrics": scrape,
    "metrics.health": health,
    "metrics.scrape": scrape,
  };
}

/** Who asks for WebSocket never gets this far. */
function refusePlain(ctx: Context): never {
  ctx.set({ connection: "upgrade, close", upgrade: "websocket" });
  throw new GatewayError("UPGRADE_REQUIRED", "`/v1/ws` speaks WebSocket");
}

interface AdminParts extends WebhookParts {
  readonly witnessPublisher: WitnessPublisher;
  readonly exporter: SessionExport;
  readonly fleet: UpstreamFleet;
  readonly providers: ProviderFleet;
  readonly meter: UsageMeter;
  readonly shadowLog: Pick<ShadowLog, "list">;
  readonly policies: () => readonly ActivePolicy[];
}

type OwnRouteId =
  | EvidenceRouteId
  | "admin.policies"
  | "admin.plugins"
  | "admin.shadow_decisions"
  | "admin.usage"
  | "admin.upstreams"
  | "admin.providers"
  | "admin.dead_letters"
  | "admin.redeliver";

/** Handlers of the admin port. Every answer is the caller's tenant only. */
function adminHandlers(parts: AdminParts): AdminHandlers<OwnRouteId> {
  return {
    "admin.sessions": async (ctx, caller, { query }) => {
      ctx.body = await parts.ledger.sessions(caller.tenant, query);
    },
    "admin.session": (ctx, caller, asked) => showSession(parts.ledger, ctx, caller, asked),
    "admin.export": (ctx, caller, asked) => sendBundle(parts.exporter, ctx, caller, asked),
    "admin.report": (ctx, caller, asked) => sendReport(parts.exporter, ctx, caller, asked),
    "admin.verify": (ctx, caller) => verifyChain(parts, ctx, caller),
    "admin.evidence_verify": (ctx, caller) => verifyEvidence(parts, ctx, caller),
    "admin.checkpoint": async (ctx, caller) => {
      ctx.body = await parts.witnessPublisher.checkpoint(caller.tenant);
    },
    "admin.keys": async (ctx, caller) => {
      ctx.body = await parts.witnessPublisher.keys(caller.tenant);
    },
    "admin.rotate": (ctx, caller) => rotateKey(parts, ctx, caller),
    "admin.policies": (ctx) => {
      ctx.body = { items: parts.policies(), next: null };
    },
    "admin.plugins": (ctx) => {
      ctx.body = { items: pluginsOf(parts.policies()), next: null };
    },
    "admin.shadow_decisions": (ctx, caller, { query }) => {
      ctx.body = parts.shadowLog.list(caller.tenant, query);
    },
    "admin.usage": (ctx, caller, { query }) => showUsage(parts.meter, ctx, caller, query),
    "admin.upstreams": (ctx) => {
      ctx.body = { items: parts.fleet.health(), next: null };
    },
    "admin.providers": (ctx) => {
      ctx.body = { items: parts.providers.health().map(showProvider), next: null };
    },
    "admin.dead_letters": (ctx, caller, { query }) => listDeadLetters(parts, ctx, caller, query),
    "admin.redeliver": (ctx, caller, { id }) => redeliver(parts, ctx, caller, id),
  };
}

/** Checks the caller's chain from its first record. */
async function verifyChain(parts: AdminParts, ctx: Context, caller: Principal): Promise<void> {
  const report = await parts.ledger.verify(caller.tenant);
  if (report.ok) await recordVerification(parts, caller, "audit.verify");
  ctx.body = report;
}

/** The same, and what every witness says of the chain. One that contradicts it is believed. */
async function verifyEvidence(parts: AdminParts, ctx: Context, caller: Principal): Promise<void> {
  const report = await parts.ledger.verify(caller.tenant);
  const witnesses = await parts.witnessPublisher.ask(caller.tenant);
  const contradicted = witnesses.some(({ verdict }) => verdict === "behind" || verdict === "forked");
  if (report.ok && !contradicted) await recordVerification(parts, caller, "evidence.verify");
  ctx.body = { ...report, ok: report.ok && !contradicted, witnesses };
}

/** Hands the caller's chain over to a new key. Who asked for it is on record with it. */
async function rotateKey({ ledger }: AdminParts, ctx: Context, caller: Principal): Promise<void> {
  const { tenant, id } = caller;
  ctx.body = { tenant, key_id: await ledger.rotateKey(tenant, { action: "evidence.rotate", principal: id }) };
}

/** Puts on record who asked. A chain that is not sound takes no record any more: the answer alone says so. */
function recordVerification({ ledger }: AdminParts, caller: Principal, action: string): Promise<void> {
  return ledger.recordEvent(caller.tenant, "admin", { action, principal: caller.id, ok: true });
}

/** The exposition text that a scraper reads. */
function metricsHandler(metrics: Metrics): (ctx: Context) => Promise<void> {
  return async (ctx) => {
    const { type, text } = await metrics.exposition(ctx.req.headers.accept);
    ctx.type = type;
    ctx.body = text;
  };
}
