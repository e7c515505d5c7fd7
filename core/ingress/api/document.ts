import type { Json, JsonObject } from "../../kernel/json.ts";
import { type Access, type AdminRouteId, routes } from "../route.ts";
import { type Operation, type QueryParameter, subjects } from "./operation.ts";
import { problemSchema, responsesOf } from "./response.ts";
import { components, operations } from "./table.ts";

const about = `What operators, reviewers and auditors ask of the gateway.

Every answer is of the caller's tenant alone: what belongs to another is not there (404). A list comes in pages:
\`next\` is the \`cursor\` of the following page, and null after the last. What a request says beyond what stands here
is refused, and so is whatever does not fit. Errors are RFC 9457 problem documents; \`code\` never changes meaning.`;

const securitySchemes: JsonObject = {
  apiKey: { type: "apiKey", in: "header", name: "X-API-Key", description: "A key as `gateway keys new` prints it." },
  bearer: { type: "http", scheme: "bearer", description: "The same key, as `Authorization: Bearer <key>`." },
};

/** The OpenAPI 3.1 document of the admin port. `version`: of the gateway. */
export function buildDocument(version: string): JsonObject {
  return {
    openapi: "3.1.0",
    info: {
      title: "Agent Governance Gateway: admin API",
      version,
      description: about,
      license: { name: "Apache-2.0", identifier: "Apache-2.0" },
    },
    servers: [{ url: "/", description: "The admin port." }],
    tags: Object.entries(subjects).map(([name, description]) => ({ name, description })),
    security: [{ apiKey: [] }, { bearer: [] }],
    paths: pathsOf(),
    components: { schemas: { ...components, Problem: problemSchema }, securitySchemes },
  };
}

function pathsOf(): JsonObject {
  const paths: Record<string, JsonObject> = {};
  for (const id of Object.keys(operations).sort() as AdminRouteId[]) {
    const { method, path, access } = routes[id];
    const place = path.replace(/:(\w+)/g, "{$1}");
    paths[place] = { ...paths[place], [method.toLowerCase()]: describe(operations[id], access) };
  }
  return paths;
}

function describe(operation: Operation, access: Access): JsonObject {
  const { name, subject, summary, body } = operation;
  const parameters = parametersOf(operation);
  return {
    operationId: name,
    tags: [subject],
    summary,
    description: accessText(access),
    ...(access === "public" ? { security: [] } : {}),
    ...(parameters.length === 0 ? {} : { parameters }),
    ...(body === undefined
      ? {}
      : {
          requestBody: {
            required: body.required,
            content: { "application/json": { schema: body.schema, example: body.example } },
          },
        }),
    responses: responsesOf(access, operation),
  };
}

function accessText(access: Access): string {
  if (access === "public") return "For whoever reaches the port.";
  return access === "key" ? "For every key." : `For keys whose role carries \`${access}\`.`;
}

function parametersOf({ params = {}, query = {} }: Operation): readonly Json[] {
  return [
    ...Object.entries(params).map(([name, { description, schema }]) => ({
      name,
      in: "path",
      required: true,
      description,
      schema,
    })),
    ...Object.entries(query).map(([name, parameter]) => queryParameter(name, parameter)),
  ];
}

/** Its description stands in its schema already. */
function queryParameter(name: string, { schema, required = false, repeated = false }: QueryParameter): JsonObject {
  const isList = schema.type === "array";
  return { name, in: "query", required, ...(isList ? { style: "form", explode: repeated } : {}), schema };
}
