import {
  type DocumentNode,
  execute,
  GraphQLError,
  NoSchemaIntrospectionCustomRule,
  parse,
  specifiedRules,
  validate,
} from "graphql";
import type { Context } from "koa";
import { GatewayError } from "../../action/error.ts";
import { isJsonObject, type JsonObject } from "../../action/json.ts";
import { typeName } from "../../action/json-rpc.ts";
import { type JsonBounds, parseStrictText } from "../../action/strict-json.ts";
import type { AdminHandlers } from "../../operation/operation.ts";
import type { QueryAsked } from "../../operation/request.ts";
import { checkCost, queryBounds } from "./query-cost.ts";
import { type Asker, type GraphqlParts, resolversOf } from "./resolver.ts";
import { schema } from "./schema.ts";

const bounds: JsonBounds = { depth: 16, nodes: 512, stringLength: queryBounds.characters, reader: "exact" };
const rules = [...specifiedRules, NoSchemaIntrospectionCustomRule];

/** Handlers of `/admin/v1/graphql`: what the other routes answer, as much of it as is asked for, and nothing that changes. */
export function graphqlHandlers(parts: GraphqlParts): AdminHandlers<"admin.graphql" | "admin.graphql_get"> {
  const resolvers = resolversOf(parts);
  const answer = async (ctx: Context, asker: Asker, asked: QueryAsked<JsonObject | null>): Promise<void> => {
    const { query, operationName } = asked;
    const variables = asked.variables ?? {};
    const document = check(query, (parsed) => checkCost(parsed, variables));
    const { data, errors } = await execute({
      schema,
      document,
      rootValue: resolvers,
      contextValue: asker,
      variableValues: variables,
      operationName,
    });
    ctx.body = errors === undefined ? { data } : { data: data ?? null, errors: errors.map(showError) };
  };
  return {
    "admin.graphql": (ctx, caller, { body }) => answer(ctx, { caller, route: "admin.graphql" }, body),
    "admin.graphql_get": (ctx, caller, { query: { variables, ...asked } }) =>
      answer(
        ctx,
        { caller, route: "admin.graphql_get" },
        { ...asked, ...(variables === undefined ? {} : { variables: readVariables(variables) }) },
      ),
  };
}

/** Throws INVALID_REQUEST or JSON_BOUND for a text that is no query, or one that asks for too much or for the unknown. */
function check(query: string, checkSize: (document: DocumentNode) => void): DocumentNode {
  try {
    const document = parse(query, { noLocation: true, maxTokens: queryBounds.tokens });
    checkSize(document);
    const [fault] = validate(schema, document, rules, { maxErrors: 1 });
    if (fault !== undefined) throw fault;
    return document;
  } catch (cause) {
    if (!(cause instanceof GraphQLError)) throw cause;
    throw new GatewayError("INVALID_REQUEST", cause.message.slice(0, 512).toWellFormed(), { cause });
  }
}

/** Throws what `parseStrictText` throws, and INVALID_PARAMS for what is no object. */
function readVariables(text: string): JsonObject {
  const variables = parseStrictText(text, bounds);
  if (isJsonObject(variables)) return variables;
  throw new GatewayError("INVALID_PARAMS", `expected \`variables\` to be an object, got ${typeName(variables)}`);
}

/** In GraphQL's own shape: a field that cannot be answered is null, and the others are. */
function showError({ originalError, path, message }: GraphQLError): object {
  const where = path === undefined ? {} : { path };
  if (originalError === undefined || originalError === null) return { message, ...where };
  const error = GatewayError.from(originalError);
  return { message: error.publicMessage, ...where, extensions: { code: error.code } };
}
