import { type ErrorCode, errorTable } from "../../action/error.ts";
import type { Json, JsonObject } from "../../action/json.ts";
import {
  type Access,
  type AdminHandlers,
  type AdminRouteId,
  type Operation,
  type QueryParameter,
  routes,
  subjects,
} from "../../operation/operation.ts";
import { anyObject, anyText, object, oneOf, ref } from "../../operation/shape.ts";
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

/** Every body of a refusal. */
const problemSchema: JsonObject = object(
  {
    type: anyText,
    title: anyText,
    status: { type: "integer", minimum: 400, maximum: 599 },
    detail: { type: "string", description: "what was expected, and what came" },
    code: oneOf(Object.keys(errorTable)),
    request_id: { type: "string", description: "names the request in the gateway's log" },
    data: { ...anyObject, description: "particulars for machines; `retry_after_s` where waiting helps" },
  },
  ["data"],
  { description: "RFC 9457" },
);

const anyRequest: readonly ErrorCode[] = ["HOST_FORBIDDEN", "ORIGIN_FORBIDDEN", "DUPLICATE_HEADER", "INTERNAL"];
const withKey: readonly ErrorCode[] = ["KEY_MISSING", "KEY_UNKNOWN", "RATE_LIMITED", "INVALID_PARAMS"];
const withBody: readonly ErrorCode[] = [
  "MALFORMED_JSON",
  "JSON_BOUND",
  "BODY_TOO_LARGE",
  "UNSUPPORTED_MEDIA_TYPE",
  "INVALID_REQUEST",
];

/** Every code that an operation may refuse with, each once. */
function refusalsOf(access: Access, { params, body, refusals }: Operation): readonly ErrorCode[] {
  const isPermission = access !== "public" && access !== "caller" && access !== "key";
  return [
    ...new Set<ErrorCode>([
      ...anyRequest,
      ...(access === "public" ? [] : withKey),
      ...(isPermission ? (["ROLE_FORBIDDEN"] as const) : []),
      ...(params === undefined ? [] : (["NOT_FOUND"] as const)),
      ...(body === undefined ? [] : withBody),
      ...refusals,
    ]),
  ];
}

/** The `responses` of an operation: its answer, and one for each status it may refuse with. */
function responsesOf(access: Access, operation: Operation): JsonObject {
  const { status, description, content } = operation.answer;
  const answer = {
    description,
    content: Object.fromEntries(
      Object.entries(content).map(([type, schema]) => [type, schema === null ? {} : { schema }]),
    ),
  };
  return { [status]: answer, ...refusalsByStatus(refusalsOf(access, operation)) };
}

function refusalsByStatus(codes: readonly ErrorCode[]): JsonObject {
  const statuses = [...new Set(codes.map((code) => errorTable[code].status))].sort((a, b) => a - b);
  return Object.fromEntries(
    statuses.map((status) => {
      const told = codes.filter((code) => errorTable[code].status === status);
      const description = told.map((code) => `\`${code}\`: ${errorTable[code].text}`).join("; ");
      const content = { "application/problem+json": { schema: ref("Problem") } };
      return [status, { description, ...(status === 429 ? { headers: { "Retry-After": wait } } : {}), content }];
    }),
  );
}

const wait: JsonObject = {
  description: "Seconds until the same request may be made again.",
  schema: { type: "integer", minimum: 1 },
};

/** The handler that tells what the admin port can be asked. The document is made when somebody wants it first. */
export function documentHandlers(version: () => string): AdminHandlers<"admin.openapi"> {
  let text: string | undefined;
  return {
    "admin.openapi": (ctx) => {
      text ??= JSON.stringify(buildDocument(version()));
      ctx.type = "application/json; charset=utf-8";
      ctx.body = text;
    },
  };
}
