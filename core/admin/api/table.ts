import type { TSchema } from "@sinclair/typebox";
import { approvalOperations, approvalSchemas } from "../../approval/operation.ts";
import { backupOperations, backupSchemas } from "../../backup/operation.ts";
import { definitionOperations, definitionSchemas } from "../../definition/operation.ts";
import { evidenceOperations, evidenceSchemas } from "../../evidence/operation.ts";
import { explainOperations, explainSchemas } from "../../explain/operation.ts";
import { killOperations, killSchemas } from "../../kill/operation.ts";
import { manifestOperations, manifestSchemas } from "../../manifest/operation.ts";
import { notifyOperations } from "../../notify/operation.ts";
import { policyOperations, policySchemas } from "../../policy/operation.ts";
import { providerOperations } from "../../provider/operation.ts";
import { sessionOperations, sessionSchemas } from "../../session/operation.ts";
import { ticketOperations, ticketSchemas } from "../../ticket/operation.ts";
import { upstreamOperations } from "../../upstream/operation.ts";
import { usageOperations } from "../../usage/operation.ts";
import { serviceOperations } from "./service.ts";

/** Every operation of the admin port by its `operationId`. */
export const adminOperations = {
  ...serviceOperations,
  ...evidenceOperations,
  ...approvalOperations,
  ...explainOperations,
  ...policyOperations,
  ...usageOperations,
  ...upstreamOperations,
  ...providerOperations,
  ...notifyOperations,
  ...sessionOperations,
  ...killOperations,
  ...ticketOperations,
  ...backupOperations,
  ...manifestOperations,
  ...definitionOperations,
};

/** Components of the document: schemas that several responses share. */
export const components: Readonly<Record<string, TSchema>> = {
  ...approvalSchemas,
  ...backupSchemas,
  ...evidenceSchemas,
  ...explainSchemas,
  ...killSchemas,
  ...manifestSchemas,
  ...definitionSchemas,
  ...policySchemas,
  ...sessionSchemas,
  ...ticketSchemas,
};
