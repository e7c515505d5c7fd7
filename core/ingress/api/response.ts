import { type ErrorCode, errorTable } from "../../kernel/error.ts";
import type { JsonObject } from "../../kernel/json.ts";
import type { Access } from "../route.ts";
import type { Operation } from "./operation.ts";
import { anyObject, anyText, object, oneOf, ref } from "./shape.ts";

/** Every body of a refusal. */
export const problemSchema: JsonObject = object(
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
export function refusalsOf(access: Access, { params, body, refusals }: Operation): readonly ErrorCode[] {
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
export function responsesOf(access: Access, operation: Operation): JsonObject {
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
