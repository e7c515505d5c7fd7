import { mountOperations } from "../admin/admin-port.ts";
import { serviceHandlers } from "../admin/api/handler.ts";
import { RequestReader } from "../admin/api/request-reader.ts";
import { serviceOperations } from "../admin/api/service.ts";
import { approvalHandlers, approvalOperations } from "../approval/operation.ts";
import { backupHandlers, backupOperations } from "../backup/operation.ts";
import { definitionHandlers, definitionOperations } from "../definition/operation.ts";
import { evidenceHandlers } from "../evidence/handler.ts";
import { evidenceOperations } from "../evidence/operation.ts";
import { explainHandlers, explainOperations } from "../explain/operation.ts";
import type { AccessRule } from "../http/access.ts";
import type { MountedRoute } from "../http/app.ts";
import type { Health } from "../http/health.ts";
import { AdminRate } from "../http/rate.ts";
import type { RequestGuard } from "../http/request.ts";
import { killHandlers, killOperations } from "../kill/operation.ts";
import { manifestHandlers, manifestOperations } from "../manifest/operation.ts";
import { notifyHandlers, notifyOperations } from "../notify/operation.ts";
import { type ServedOperation, serveOperations } from "../operation/operation.ts";
import { policyHandlers, policyOperations } from "../policy/operation.ts";
import { providerHandlers, providerOperations } from "../provider/operation.ts";
import { evaluateAction } from "../road/run.ts";
import { sessionHandlers, sessionOperations } from "../session/operation.ts";
import { ticketHandlers, ticketOperations } from "../ticket/operation.ts";
import { upstreamHandlers, upstreamOperations } from "../upstream/operation.ts";
import { usageHandlers, usageOperations } from "../usage/operation.ts";
import type { Parts } from "./compose.ts";
import { bodyLimits, elapsedMs, newId } from "./identity.ts";

/** The routes of the admin port: the operations of every feature, behind one access check. */
export function adminRoutes(
  parts: Parts,
  accessRule: AccessRule,
  guard: RequestGuard,
  health: () => Health,
): readonly MountedRoute[] {
  const { config, metrics, attempts } = parts;
  const operations = servedOperations(parts, health);
  const reader = new RequestReader(bodyLimits(config));
  const rate = new AdminRate({
    requestsPerMinute: config.limits.adminRequestsPerMinute,
    unauthenticatedPerMinute: config.limits.adminUnauthenticatedPerMinute,
    elapsedMs,
    onLimited: (by) => metrics.adminLimited(by),
  });
  return mountOperations(operations, { accessRule, rate, guard, reader, attempts });
}

function servedOperations(parts: Parts, health: () => Health): readonly ServedOperation[] {
  const policies = () => parts.chain.active;
  return [
    ...serveOperations(serviceOperations, serviceHandlers({ ...parts, health, policies })),
    ...serveOperations(evidenceOperations, evidenceHandlers(parts)),
    ...serveOperations(approvalOperations, approvalHandlers(parts)),
    ...serveOperations(
      explainOperations,
      explainHandlers({ ...parts, clock: Date.now, newId, evaluate: (action) => evaluateAction(parts.road, action) }),
    ),
    ...serveOperations(policyOperations, policyHandlers({ policies, shadowLog: parts.metrics.shadowLog })),
    ...serveOperations(usageOperations, usageHandlers(parts)),
    ...serveOperations(upstreamOperations, upstreamHandlers(parts)),
    ...serveOperations(definitionOperations, definitionHandlers(parts)),
    ...serveOperations(providerOperations, providerHandlers(parts)),
    ...serveOperations(notifyOperations, notifyHandlers(parts)),
    ...serveOperations(sessionOperations, sessionHandlers(parts)),
    ...serveOperations(killOperations, killHandlers(parts)),
    ...serveOperations(ticketOperations, ticketHandlers(parts)),
    ...serveOperations(backupOperations, backupHandlers(parts)),
    ...serveOperations(manifestOperations, manifestHandlers(parts)),
  ];
}
