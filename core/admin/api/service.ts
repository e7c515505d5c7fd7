import type { JsonObject } from "../../action/json.ts";
import type { Answer, Operations } from "../../operation/operation.ts";
import { paging } from "../../operation/request.ts";
import {
  answers,
  anyObject,
  anyText,
  closed,
  count,
  list,
  object,
  oneOf,
  page,
  ref,
  text,
  time,
} from "../../operation/shape.ts";
import { queryBounds } from "../graphql/query-cost.ts";

type ServiceRouteId =
  | "admin.health"
  | "admin.metrics"
  | "admin.openapi"
  | "admin.graphql"
  | "admin.graphql_get"
  | "admin.backup"
  | "admin.backups";

/** What the answers about the gateway itself are made of. */
export const serviceSchemas: Readonly<Record<string, JsonObject>> = {
  Backup: object({
    name: anyText,
    state: oneOf(["writing", "verifying", "complete", "failed"]),
    made_at: time,
    bytes: count,
  }),
};

const query = text(1, queryBounds.characters, `a query of 1 to ${queryBounds.characters} characters`);
const operationName = text(1, 256, "the name of the operation that is meant, of at most 256 characters");
/** What fits into a URL beside everything else: all headers together have 16,384 bytes. */
const urlText = 8_192;
const queried = answers(
  "In GraphQL's own shape: a field that cannot be answered is null, and `errors` says why.",
  object(
    {
      data: { anyOf: [anyObject, { type: "null" }] },
      errors: list(
        object(
          { message: anyText, path: list({ type: ["string", "integer"] }), extensions: object({ code: anyText }) },
          ["path", "extensions"],
        ),
      ),
    },
    ["errors"],
  ),
);
const begun: Answer = {
  status: 202,
  description: "The backup that is being made.",
  content: { "application/json": ref("Backup") },
};

/** The gateway itself: its health, its metrics, its backups, and what else there is to ask. */
export const serviceOperations: Operations<ServiceRouteId> = {
  "admin.health": {
    name: "getHealth",
    subject: "service",
    summary: "Whether the gateway can do its work; 503 while it stops",
    answer: answers("Its health.", object({ status: oneOf(["ok", "degraded", "stopping"]), version: anyText })),
    refusals: [],
  },
  "admin.metrics": {
    name: "getMetrics",
    subject: "service",
    summary: "The metrics, as Prometheus reads them",
    answer: { status: 200, description: "Text exposition format.", content: { "text/plain": null } },
    refusals: [],
  },
  "admin.openapi": {
    name: "getDocument",
    subject: "service",
    summary: "This document",
    answer: answers("OpenAPI 3.1.", anyObject),
    refusals: [],
  },
  "admin.graphql": {
    name: "queryGraphql",
    subject: "service",
    summary: "What the lists and views tell, as much of it as is asked for; it changes nothing",
    body: {
      schema: closed(
        {
          query,
          variables: { type: ["object", "null"], description: "an object" },
          operationName: { ...operationName, type: ["string", "null"] },
        },
        ["variables", "operationName"],
      ),
      example: { query: "{ evidence { state seq } }" },
      required: true,
      limits: {
        bytes: 65_536,
        json: { depth: 16, nodes: 512, stringLength: queryBounds.characters, reader: "exact" },
      },
    },
    answer: queried,
    refusals: ["INVALID_REQUEST", "JSON_BOUND"],
  },
  "admin.graphql_get": {
    name: "queryGraphqlByUrl",
    subject: "service",
    summary: "The same in a URL",
    query: {
      query: { schema: text(1, urlText, `a query of 1 to ${urlText} characters`), required: true },
      variables: { schema: text(1, urlText, `the text of a JSON object, of 1 to ${urlText} characters`) },
      operationName: { schema: operationName },
    },
    answer: queried,
    refusals: ["INVALID_REQUEST", "JSON_BOUND", "MALFORMED_JSON"],
  },
  "admin.backup": {
    name: "createBackup",
    subject: "resilience",
    summary: "Begins a backup of all that the gateway keeps, while it serves",
    answer: begun,
    refusals: ["NOT_FOUND", "ROLE_FORBIDDEN", "BACKUP_BUSY", "EVIDENCE_UNAVAILABLE"],
  },
  "admin.backups": {
    name: "listBackups",
    subject: "resilience",
    summary: "The backups, the latest first",
    query: paging,
    answer: answers("A page of backups.", page(ref("Backup"))),
    refusals: ["NOT_FOUND", "ROLE_FORBIDDEN"],
  },
};
