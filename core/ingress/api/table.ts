import type { JsonObject } from "../../kernel/json.ts";
import type { AdminRouteId } from "../route.ts";
import { approvalOperations } from "./approval.ts";
import { approvalSchemas } from "./approval-schema.ts";
import { evidenceOperations } from "./evidence.ts";
import { evidenceSchemas } from "./evidence-schema.ts";
import { explanationOperations, explanationSchemas } from "./explanation.ts";
import { manifestOperations, manifestSchemas } from "./manifest.ts";
import type { Operations } from "./operation.ts";
import { policyOperations, policySchemas } from "./policy.ts";
import { serviceOperations, serviceSchemas } from "./service.ts";
import { sessionOperations, sessionSchemas } from "./session.ts";
import { ticketOperations, ticketSchemas } from "./ticket.ts";
import { trafficOperations } from "./traffic.ts";

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
