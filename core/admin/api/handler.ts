import { type Health, healthStatus } from "../../http/health.ts";
import type { Metrics } from "../../observe/metrics.ts";
import { type AdminHandlers, replyWith } from "../../operation/operation.ts";
import { graphqlExecutor, readVariables } from "../graphql/endpoint.ts";
import type { GraphqlSources } from "../graphql/resolver.ts";
import { buildDocument } from "./document.ts";
import type { serviceOperations } from "./service.ts";

interface ServiceSources extends GraphqlSources {
  readonly health: () => Health;
  readonly metrics: Metrics;
}

/** Handlers of the gateway itself. The document is built on the first request for it. */
export function serviceHandlers(sources: ServiceSources): AdminHandlers<typeof serviceOperations> {
  const { health, metrics } = sources;
  const execute = graphqlExecutor(sources);
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
