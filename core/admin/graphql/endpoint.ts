import {
  type DocumentNode,
  execute,
  GraphQLError,
  NoSchemaIntrospectionCustomRule,
  parse,
  specifiedRules,
  validate,
} from "graphql";
import { GatewayError } from "../../action/error.ts";
import type { JsonObject } from "../../action/json.ts";
import { queryBounds } from "../api/service.ts";
import { checkCost } from "./query-cost.ts";
import { type GraphqlCaller, type GraphqlSources, resolversOf } from "./resolver.ts";
import { schema } from "./schema.ts";

export interface GraphqlQuery {
  readonly query: string;
  readonly variables?: JsonObject | null;
  readonly operationName?: string | null;
}

const rules = [...specifiedRules, NoSchemaIntrospectionCustomRule];

/** Returns the function that executes queries: the same data as the lists and views of the API, read-only. */
export function graphqlExecutor(
  sources: GraphqlSources,
): (asker: GraphqlCaller, query: GraphqlQuery) => Promise<object> {
  const rootValue = resolversOf(sources);
  return async (contextValue, { query, variables, operationName }) => {
    const variableValues = variables ?? {};
    const document = parseQuery(query, variableValues);
    const { data, errors } = await execute({
      schema,
      document,
      rootValue,
      contextValue,
      variableValues,
      operationName,
    });
    return errors === undefined ? { data } : { data: data ?? null, errors: errors.map(renderError) };
  };
}

/** Throws INVALID_REQUEST or JSON_BOUND for a text that is no query, is over a limit, or does not fit the schema. */
function parseQuery(query: string, variables: JsonObject): DocumentNode {
  try {
    const document = parse(query, { noLocation: true, maxTokens: queryBounds.tokens });
    checkCost(document, variables);
    const [fault] = validate(schema, document, rules, { maxErrors: 1 });
    if (fault !== undefined) throw fault;
    return document;
  } catch (cause) {
    if (!(cause instanceof GraphQLError)) throw cause;
    throw new GatewayError("INVALID_REQUEST", cause.message.slice(0, 512).toWellFormed(), { cause });
  }
}

/** Renders an error in GraphQL's own shape: its field is null, other fields keep their values. */
function renderError({ originalError, path, message }: GraphQLError): object {
  const where = path === undefined ? {} : { path };
  if (originalError === undefined || originalError === null) return { message, ...where };
  const error = GatewayError.from(originalError);
  return { message: error.publicMessage, ...where, extensions: { code: error.code } };
}
