import type { Context } from "koa";
import type { GatewayConfig } from "../config/gateway-config.ts";
import { GatewayError } from "../kernel/error.ts";
import type { Metrics } from "../observe/metrics.ts";
import type { Chain } from "../policy/chain.ts";
import type { AdminParts } from "./admin.ts";
import { adminHandlers, metricsHandler } from "./admin.ts";
import { documentHandlers } from "./api/endpoint.ts";
import type { Handlers } from "./app.ts";
import { approvalHandlers } from "./approval-admin.ts";
import type { ApprovalParts } from "./approval-view.ts";
import { type BackupParts, backupHandlers } from "./backup.ts";
import { type DashboardPageParts, dashboardHandlers } from "./dashboard/page.ts";
import { explanationHandlers } from "./explanation.ts";
import { graphqlHandlers } from "./graphql/endpoint.ts";
import { type Health, healthHandler } from "./health.ts";
import type { KillAuthorityParts } from "./kill-authority.ts";
import { type ManifestParts, manifestHandlers } from "./manifest-admin.ts";
import type { McpEndpoint } from "./mcp/endpoint.ts";
import type { SseEndpoint } from "./mcp/sse-endpoint.ts";
import type { ModelEndpoint } from "./model/endpoint.ts";
import { type PolicyTestParts, policyTestHandlers } from "./policy-test.ts";
import type { RefusedAttempts } from "./refused-attempt.ts";
import { type SessionAdminParts, sessionAdminHandlers } from "./session-admin.ts";
import { sessionKillHandlers } from "./session-kill.ts";
import { type TicketParts, ticketHandlers } from "./ticket-admin.ts";

export interface HandlerParts
  extends Omit<AdminParts, "policies" | "trials">,
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
  readonly chain: Chain;
  readonly metrics: Metrics;
  readonly attempts: RefusedAttempts;
  readonly health: () => Health;
}

/** What answers each route of the table. */
export function handlersOf(parts: HandlerParts): Handlers {
  const health = healthHandler(parts.health);
  const scrape = metricsHandler(parts.metrics);
  return {
    ...adminHandlers({ ...parts, policies: () => parts.chain.standing, trials: parts.metrics.trials }),
    ...approvalHandlers(parts),
    ...sessionKillHandlers(parts),
    ...manifestHandlers(parts),
    ...policyTestHandlers(parts),
    ...explanationHandlers(parts),
    ...graphqlHandlers({ ...parts, policies: () => parts.chain.standing }),
    ...ticketHandlers(parts),
    ...sessionAdminHandlers(parts),
    ...backupHandlers(parts),
    ...documentHandlers(() => parts.health().version),
    ...dashboardHandlers({ ...parts, policies: () => parts.chain.standing }),
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
