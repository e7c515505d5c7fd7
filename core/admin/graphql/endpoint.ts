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
import { isJsonObject, type JsonObject } from "../../action/json.ts";
import { typeName } from "../../action/json-rpc.ts";
import { type JsonBounds, parseStrictJson } from "../../action/strict-json.ts";
import { queryBounds } from "../api/service.ts";
import { checkCost } from "./query-cost.ts";
import { type GraphqlCaller, type GraphqlSources, resolversOf } from "./resolver.ts";
import { schema } from "./schema.ts";

export type { GraphqlSources };

interface GraphqlQuery {
  readonly query: string;
  readonly variables?: JsonObject | null;
  readonly operationName?: string | null;
}

const bounds: JsonBounds = { depth: 16, nodes: 512, stringLength: queryBounds.characters, reader: "exact" };
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

/** Parses the `variables` of a URL. Throws what `parseStrictJson` throws, and INVALID_PARAMS for what is no object. */
export function readVariables(text: string): JsonObject {
  const variables = parseStrictJson(text, bounds);
  if (isJsonObject(variables)) return variables;
  throw new GatewayError("INVALID_PARAMS", `expected \`variables\` to be an object, got ${typeName(variables)}`);
}

/** Renders an error in GraphQL's own shape: its field is null, other fields keep their values. */
function renderError({ originalError, path, message }: GraphQLError): object {
  const where = path === undefined ? {} : { path };
  if (originalError === undefined || originalError === null) return { message, ...where };
  const error = GatewayError.from(originalError);
  return { message: error.publicMessage, ...where, extensions: { code: error.code } };
}
