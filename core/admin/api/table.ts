import type { JsonObject } from "../../action/json.ts";
import { approvalOperations, approvalSchemas } from "../../approval/operation.ts";
import { evidenceOperations, evidenceSchemas } from "../../evidence/operation.ts";
import { explanationOperations, explanationSchemas } from "../../explain/operation.ts";
import { manifestOperations, manifestSchemas } from "../../manifest/operation.ts";
import type { AdminRouteId, Operations } from "../../operation/operation.ts";
import { policyOperations, policySchemas } from "../../policy/operation.ts";
import { sessionOperations, sessionSchemas } from "../../session/operation.ts";
import { ticketOperations, ticketSchemas } from "../../ticket/operation.ts";
import { trafficOperations } from "../../upstream/operation.ts";
import { serviceOperations, serviceSchemas } from "./service.ts";

/** Every operation of the admin port: a route without one does not compile. */
export const operations: Operations<AdminRouteId> = {
  ...approvalOperations,
  ...evidenceOperations,
  ...explanationOperations,
  ...manifestOperations,
  ...policyOperations,
  ...serviceOperations,
  ...sessionOperations,
  ...ticketOperations,
  ...trafficOperations,
};

/** What several answers are made of, by name. */
export const components: Readonly<Record<string, JsonObject>> = {
  ...approvalSchemas,
  ...evidenceSchemas,
  ...explanationSchemas,
  ...manifestSchemas,
  ...policySchemas,
  ...serviceSchemas,
  ...sessionSchemas,
  ...ticketSchemas,
};
