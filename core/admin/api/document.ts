import type { TSchema } from "@sinclair/typebox";
import { type ErrorCode, errorTable } from "../../action/error.ts";
import type { Json, JsonObject } from "../../action/json.ts";
import { Type } from "../../config/type.ts";
import { type Access, type AdminOperation, changes, operationTags, takesSession } from "../../operation/operation.ts";
import { anyObject, anyText, enumOf, ref } from "../../operation/shape.ts";
import { adminOperations, components } from "./table.ts";

const about = `The API of operators, reviewers and auditors.

Responses contain data of the caller's tenant only; an id of another tenant is unknown (404). Lists are paged: \`next\`
is the \`cursor\` of the following page, and null after the last. Unknown members of a request are refused, and so is
whatever does not fit its schema. Errors are RFC 9457 problem documents; a \`code\` never changes meaning.`;

const securitySchemes: JsonObject = {
  apiKey: { type: "apiKey", in: "header", name: "X-API-Key", description: "A key, as `gateway keys new` prints it." },
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
    tags: Object.entries(operationTags).map(([name, description]) => ({ name, description })),
    security: [{ apiKey: [] }, { bearer: [] }],
    paths: pathsOf(),
    components: { schemas: { ...components, Problem: problem } as unknown as JsonObject, securitySchemes },
  };
}

function pathsOf(): JsonObject {
  const paths: Record<string, JsonObject> = {};
  for (const [name, operation] of Object.entries<AdminOperation>(adminOperations)) {
    const path = operation.path.replace(/:(\w+)/g, "{$1}");
    paths[path] = { ...paths[path], [operation.method.toLowerCase()]: describe(name, operation) };
  }
  return Object.fromEntries(Object.entries(paths).sort(([a], [b]) => (a < b ? -1 : 1)));
}

function describe(name: string, operation: AdminOperation): JsonObject {
  const { access, tag, summary, body } = operation;
  const parameters = parametersOf(operation);
  return {
    operationId: name,
    tags: [tag],
    summary,
    description: accessText(access),
    ...(access === "public" ? { security: [] } : {}),
    ...(parameters.length === 0 ? {} : { parameters }),
    ...(body === undefined
      ? {}
      : {
          requestBody: {
            required: body.required,
            content: { "application/json": { schema: asJson(body.schema), example: body.example } },
          },
        }),
    responses: responsesOf(operation),
  };
}

function accessText(access: Access): string {
  if (access === "public") return "No key required.";
  return access === "key" ? "Requires a key." : `Requires a key whose role has \`${access}\`.`;
}

function parametersOf({ params = {}, query, repeated = [] }: AdminOperation): readonly Json[] {
  return [
    ...Object.entries(params).map(([name, { description, schema }]) => ({
      name,
      in: "path",
      required: true,
      description,
      schema: asJson(schema),
    })),
    ...Object.entries<TSchema>(query?.properties ?? {}).map(([name, schema]) => ({
      name,
      in: "query",
      required: (query?.required ?? []).includes(name) && schema.default === undefined,
      ...(schema.type === "array" ? { style: "form", explode: repeated.includes(name) } : {}),
      schema: asJson(schema),
    })),
  ];
}

/** A schema is JSON but for its symbols, which are not printed. */
function asJson(schema: TSchema): JsonObject {
  return schema as unknown as JsonObject;
}

/** The body of every error. */
const problem: TSchema = Type.Object(
  {
    type: anyText,
    title: anyText,
    status: Type.Integer({ minimum: 400, maximum: 599 }),
    detail: Type.String({ description: "the expected and the actual value" }),
    code: enumOf(Object.keys(errorTable)),
    request_id: Type.String({ description: "identifies the request in the gateway's log" }),
    data: Type.Optional({
      ...anyObject,
      description: "machine-readable details; `retry_after_s` where waiting helps",
    }),
  },
  { description: "RFC 9457" },
);

const anyRequest: readonly ErrorCode[] = ["HOST_FORBIDDEN", "ORIGIN_FORBIDDEN", "DUPLICATE_HEADER", "INTERNAL"];
const withKey: readonly ErrorCode[] = ["KEY_MISSING", "KEY_UNKNOWN", "RATE_LIMITED", "INVALID_PARAMS"];
const withBody: readonly ErrorCode[] = ["MALFORMED_JSON", "JSON_BOUND", "BODY_TOO_LARGE", "INVALID_REQUEST"];

/** Every error code of an operation, each once. */
function errorsOf(operation: AdminOperation): readonly ErrorCode[] {
  const { access, params, body, errors } = operation;
  const isPermission = access !== "public" && access !== "caller" && access !== "key";
  return [
    ...new Set<ErrorCode>([
      ...anyRequest,
      ...(access === "public" ? [] : withKey),
      ...(isPermission ? (["ROLE_FORBIDDEN"] as const) : []),
      ...(params === undefined ? [] : (["NOT_FOUND"] as const)),
      ...(takesSession(operation) ? (["NOT_FOUND", "SESSION_AMBIGUOUS"] as const) : []),
      ...(changes(operation) ? (["UNSUPPORTED_MEDIA_TYPE"] as const) : []),
      ...(body === undefined ? [] : withBody),
      ...errors,
    ]),
  ];
}

/** The `responses` of an operation: success, and one for each status of its errors. */
function responsesOf(operation: AdminOperation): JsonObject {
  const { status, description, content } = operation.response;
  const success = {
    description,
    content: Object.fromEntries(
      Object.entries(content).map(([type, schema]) => [type, schema === null ? {} : { schema: asJson(schema) }]),
    ),
  };
  return { [status]: success, ...errorsByStatus(errorsOf(operation)) };
}

function errorsByStatus(codes: readonly ErrorCode[]): JsonObject {
  const statuses = [...new Set(codes.map((code) => errorTable[code].status))].sort((a, b) => a - b);
  return Object.fromEntries(
    statuses.map((status) => {
      const ofStatus = codes.filter((code) => errorTable[code].status === status);
      const description = ofStatus.map((code) => `\`${code}\`: ${errorTable[code].text}`).join("; ");
      const content = { "application/problem+json": { schema: asJson(ref("Problem")) } };
      return [status, { description, ...(status === 429 ? { headers: { "Retry-After": wait } } : {}), content }];
    }),
  );
}

const wait: JsonObject = {
  description: "Seconds until the request may be repeated.",
  schema: { type: "integer", minimum: 1 },
};
