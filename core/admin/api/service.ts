import type { JsonObject } from "../../action/json.ts";
import { Type } from "../../config/type.ts";
import type { AdminOperations } from "../../operation/operation.ts";
import { anyObject, anyText, boundedText, closed, enumOf, jsonResponse, nullable } from "../../operation/shape.ts";

/** Limits of one GraphQL query. */
export const queryBounds = { characters: 16_384, tokens: 2_000, depth: 8, fields: 200, cost: 10_000 } as const;

const query = boundedText(1, queryBounds.characters, `a query of 1 to ${queryBounds.characters} characters`);
const operationName = boundedText(1, 256, "the name of the operation to run, of at most 256 characters");
/** Fits into a URL beside everything else: all headers together may have 16,384 bytes. */
const maxUrlText = 8_192;
const graphqlResponse = jsonResponse(
  "In GraphQL's own shape: a field without a value is null, and `errors` says why.",
  Type.Object({
    data: nullable(anyObject),
    errors: Type.Optional(
      Type.Array(
        Type.Object({
          message: anyText,
          path: Type.Optional(Type.Array(Type.Unsafe({ type: ["string", "integer"] }))),
          extensions: Type.Optional(Type.Object({ code: anyText })),
        }),
      ),
    ),
  }),
);

/** The gateway itself: health, metrics, this API's document, and GraphQL. */
export const serviceOperations = {
  getHealth: {
    id: "admin.health",
    method: "GET",
    path: "/health",
    access: "public",
    tag: "service",
    summary: "Get the health of the gateway; 503 while it stops, or is a replica that may not own the store any more",
    response: jsonResponse(
      "Its health.",
      Type.Object({ status: enumOf(["ok", "degraded", "fenced", "stopping"]), version: anyText }),
    ),
    errors: [],
  },
  getMetrics: {
    id: "admin.metrics",
    method: "GET",
    path: "/metrics",
    access: "metrics.read",
    tag: "service",
    summary: "Get the metrics in Prometheus format",
    response: { status: 200, description: "Text exposition format.", content: { "text/plain": null } },
    errors: [],
  },
  getDocument: {
    id: "admin.openapi",
    method: "GET",
    path: "/admin/v1/openapi.json",
    access: "key",
    tag: "service",
    summary: "Get this document",
    response: jsonResponse("OpenAPI 3.1.", anyObject),
    errors: [],
  },
  queryGraphql: {
    id: "admin.graphql",
    method: "POST",
    path: "/admin/v1/graphql",
    access: "key",
    tag: "service",
    summary: "Query lists and views in GraphQL, read-only",
    body: {
      schema: closed({
        query,
        variables: Type.Optional(
          Type.Unsafe<JsonObject | null>({
            type: ["object", "null"],
            description: "an object",
          }),
        ),
        operationName: Type.Optional(Type.Unsafe<string | null>({ ...operationName, type: ["string", "null"] })),
      }),
      example: { query: "{ evidence { state seq } }" },
      required: true,
      limits: {
        bytes: 65_536,
        json: { depth: 16, nodes: 512, stringLength: queryBounds.characters, reader: "exact" },
      },
    },
    response: graphqlResponse,
    errors: ["INVALID_REQUEST", "JSON_BOUND"],
  },
  queryGraphqlByUrl: {
    id: "admin.graphql_get",
    method: "GET",
    path: "/admin/v1/graphql",
    access: "key",
    tag: "service",
    summary: "Query lists and views in GraphQL by URL",
    query: closed({
      query: boundedText(1, maxUrlText, `a query of 1 to ${maxUrlText} characters`),
      variables: Type.Optional(
        boundedText(1, maxUrlText, `the text of a JSON object, of 1 to ${maxUrlText} characters`),
      ),
      operationName: Type.Optional(operationName),
    }),
    response: graphqlResponse,
    errors: ["INVALID_REQUEST", "JSON_BOUND", "MALFORMED_JSON"],
  },
} as const satisfies AdminOperations;
