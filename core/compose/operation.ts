import { type Entrance, mountOperations } from "../admin/admin-port.ts";
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

/** The routes of the operations of every feature, on each port that serves them. */
interface OperationRoutes {
  readonly admin: readonly MountedRoute[];
  /** Those below `/admin/v1/`, for people. */
  readonly console: readonly MountedRoute[];
}

/** Mounts the operations of every feature on both ports of people. Each has its own way in; checks and limits are the same. */
export function operationRoutes(
  parts: Parts,
  { keyRule, guard, console }: OperationEntrances,
  health: () => Health,
): OperationRoutes {
  const { config, metrics, attempts, sessionNames } = parts;
  const operations = servedOperations(parts, health);
  const reader = new RequestReader(bodyLimits(config));
  const rate = new AdminRate({
    requestsPerMinute: config.limits.adminRequestsPerMinute,
    unauthenticatedPerMinute: config.limits.adminUnauthenticatedPerMinute,
    elapsedMs,
    onLimited: (by) => metrics.adminLimited(by),
  });
  const admin: Entrance = {
    identify: (access, { rawHeaders }) => keyRule.identify(access, rawHeaders),
    checkChange: (request) => guard.checkChange(request),
  };
  const shared = { rate, reader, attempts, sessionNames };
  const ofPeople = operations.filter(({ operation }) => operation.path.startsWith("/admin/v1/"));
  return {
    admin: mountOperations(operations, { ...shared, entrance: admin }),
    console: mountOperations(ofPeople, { ...shared, entrance: console }),
  };
}

interface OperationEntrances {
  /** For the admin port, as the guard is. */
  readonly keyRule: AccessRule;
  readonly guard: RequestGuard;
  readonly console: Entrance;
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
    ...serveOperations(
      policyOperations,
      policyHandlers({ policies, rules: () => parts.chain.rules, shadowLog: parts.metrics.shadowLog }),
    ),
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
