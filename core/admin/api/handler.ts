import { GatewayError } from "../../action/error.ts";
import { isJsonObject, type JsonObject } from "../../action/json.ts";
import { typeName } from "../../action/json-rpc.ts";
import { type JsonBounds, parseStrictJson } from "../../action/strict-json.ts";
import { type Health, healthStatus } from "../../http/health.ts";
import type { Metrics } from "../../observe/metrics.ts";
import { type AdminHandlers, replyWith } from "../../operation/operation.ts";
import type { GraphqlQuery } from "../graphql/endpoint.ts";
import type { GraphqlCaller, GraphqlSources } from "../graphql/resolver.ts";
import { buildDocument } from "./document.ts";
import { queryBounds, type serviceOperations } from "./service.ts";

const variableBounds: JsonBounds = { depth: 16, nodes: 512, stringLength: queryBounds.characters, reader: "exact" };

interface ServiceSources extends GraphqlSources {
  readonly health: () => Health;
  readonly metrics: Metrics;
}

/** Handlers of the gateway itself. The document is built, and GraphQL loaded, on the first request for it. */
export function serviceHandlers(sources: ServiceSources): AdminHandlers<typeof serviceOperations> {
  const { health, metrics } = sources;
  let executor: Promise<ReturnType<typeof import("../graphql/endpoint.ts").graphqlExecutor>> | undefined;
  const execute = async (caller: GraphqlCaller, query: GraphqlQuery): Promise<object> => {
    executor ??= import("../graphql/endpoint.ts").then(({ graphqlExecutor }) => graphqlExecutor(sources));
    return (await executor)(caller, query);
  };
  let document: string | undefined;
  return {
    getHealth: () => {
      const now = health();
      return replyWith(now, { status: healthStatus(now) });
    },
    getMetrics: async (_, { accept }) => {
      const { type, text } = await metrics.exposition(accept);
      return replyWith(text, { type });
    },
    getDocument: () => {
      document ??= JSON.stringify(buildDocument(health().version));
      return replyWith(document, { type: "application/json; charset=utf-8" });
    },
    queryGraphql: (caller, { body }) => execute({ caller, operation: "admin.graphql" }, body),
    queryGraphqlByUrl: (caller, { query: { variables, ...query } }) =>
      execute(
        { caller, operation: "admin.graphql_get" },
        { ...query, ...(variables === undefined ? {} : { variables: readVariables(variables) }) },
      ),
  };
}

/** Parses the `variables` of a URL. Throws what `parseStrictJson` throws, and INVALID_PARAMS for what is no object. */
function readVariables(text: string): JsonObject {
  const variables = parseStrictJson(text, variableBounds);
  if (isJsonObject(variables)) return variables;
  throw new GatewayError("INVALID_PARAMS", `expected \`variables\` to be an object, got ${typeName(variables)}`);
}
