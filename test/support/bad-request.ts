import { type ErrorCode, errorTable } from "../../core/action/error.ts";
import type { Json, JsonObject } from "../../core/action/json.ts";
import type { AdminOperation, RequestBody } from "../../core/operation/operation.ts";
import { type OperationId, operations, routes } from "./route-table.ts";
import { faultsOf } from "./schema-fault.ts";

/** A request that an operation takes. */
export interface GoodRequest {
  readonly id: string;
  readonly query: Readonly<Record<string, string | number>>;
  readonly body: JsonObject | null;
}

/** One that differs from it in one thing, and how it is refused to whoever may have the operation. */
export interface BadRequest {
  readonly what: string;
  readonly target: string;
  readonly contentType?: string;
  readonly body?: string;
  readonly code: ErrorCode;
}

/** What `limits` of the configuration say unless told. */
const usualBytes = 4_194_304;
const usualDepth = 64;

/** Each bad input of an operation, made of its schemas and of the bounds of its body. */
export function badRequests(id: OperationId, good: GoodRequest): readonly BadRequest[] {
  const operation = operations[id];
  const target = targetOf(id, good.id);
  const usual = good.body === null ? {} : { contentType: "application/json", body: JSON.stringify(good.body) };
  return [
    ...pathFaults(id, operation).map((name) => ({
      ...usual,
      what: `the name \`${name.slice(0, 20)}\``,
      target: `${targetOf(id, name)}${queryText(good.query)}`,
      code: "NOT_FOUND" as const,
    })),
    ...queryFaults(operation, good.query).map(([what, query]) => ({
      ...usual,
      what: `query: ${what}`,
      target: target + query,
      code: "INVALID_PARAMS" as const,
    })),
    ...(operation.body === undefined || good.body === null ? [] : bodyFaults(operation.body, good.body)).map(
      (fault) => ({
        target: `${target}${queryText(good.query)}`,
        contentType: "application/json",
        ...fault,
      }),
    ),
  ];
}

/** The status that a code is answered with. */
export function statusOf(code: ErrorCode): number {
  return errorTable[code].status;
}

/** The path of an operation with a name in it. */
export function targetOf(id: OperationId, name: string): string {
  return routes[id].path.replace(/:\w+/, name);
}

export function queryText(query: GoodRequest["query"]): string {
  const members = Object.entries(query).map(([name, value]) => `${name}=${encodeURIComponent(value)}`);
  return members.length === 0 ? "" : `?${members.join("&")}`;
}

/** Names that nothing can have, by shape. */
function pathFaults(id: OperationId, { params = {} }: AdminOperation): readonly string[] {
  const [parameter] = Object.values(params);
  const fits = new RegExp(String(parameter?.schema.pattern ?? ""), "u");
  const names = ["NONE.SUCH", "x".repeat(200), `apr_${"0".repeat(31)}`];
  return routes[id].path.includes(":") ? names.filter((name) => !fits.test(name)) : [];
}

function queryFaults(
  { query, repeated: lists = [] }: AdminOperation,
  good: GoodRequest["query"],
): readonly (readonly [what: string, text: string])[] {
  const faults: [string, string][] = [["a parameter more", queryText({ ...good, surplus: 1 })]];
  for (const [name, schema] of Object.entries(query?.properties ?? {})) {
    const required = (query?.required ?? []).includes(name) && schema.default === undefined;
    const repeated = lists.includes(name);
    const { [name]: value = "x", ...others } = good;
    const rest = queryText(others).slice(1);
    const once = `${name}=${encodeURIComponent(value)}`;
    const join = (text: string): string => `?${[rest, text].filter((part) => part !== "").join("&")}`;
    if (required) faults.push([`without ${name}`, rest === "" ? "" : `?${rest}`]);
    if (!repeated) faults.push([`${name} twice`, join(`${once}&${once}`)]);
    const text = (wrong: Json): string =>
      `${name}=${encodeURIComponent(Array.isArray(wrong) ? wrong.join(",") : String(wrong))}`;
    for (const { what, value: wrong } of faultsOf(schema, schema.default ?? null)) {
      // In a query everything is text, and a list of none is a list of an empty one.
      const isText = schema.type === "string" && what === "of another type";
      if (!isText && !repeated) faults.push([`${name}: ${what}`, join(text(wrong))]);
    }
    if (repeated) faults.push([`${name}: no item of its kind`, join(`${name}=none-of-them`)]);
  }
  return faults;
}

interface BodyFault {
  readonly what: string;
  readonly body: string;
  readonly contentType?: string;
  readonly code: ErrorCode;
}

function bodyFaults({ schema, limits }: RequestBody, good: JsonObject): readonly BodyFault[] {
  const text = JSON.stringify(good);
  const bytes = limits?.bytes ?? usualBytes;
  const depth = limits?.json.depth ?? usualDepth;
  const longest = limits?.json.stringLength ?? usualBytes;
  const misfits = faultsOf(schema, good).map(({ what, value }): BodyFault => {
    const isBound = textsIn(value).some((each) => each.length > longest);
    return { what: `body: ${what}`, body: JSON.stringify(value), code: isBound ? "JSON_BOUND" : "INVALID_PARAMS" };
  });
  return [
    ...misfits,
    { what: "a list for a body", body: "[]", code: "INVALID_PARAMS" },
    { what: "null for a body", body: "null", code: "INVALID_PARAMS" },
    { what: "a body that breaks off", body: text.slice(0, -1) || "{", code: "MALFORMED_JSON" },
    { what: "a member twice", body: '{"a":1,"a":2}', code: "MALFORMED_JSON" },
    { what: "a prototype", body: `{"__proto__":{},${text.slice(1)}`.replace(",}", "}"), code: "INVALID_PARAMS" },
    { what: "too deep", body: "[".repeat(depth + 1) + "]".repeat(depth + 1), code: "JSON_BOUND" },
    { what: "too large", body: text.padEnd(bytes + 1), code: "BODY_TOO_LARGE" },
    ...["text/plain", "application/x-www-form-urlencoded", "application/json; charset=latin1"].map(
      (contentType): BodyFault => ({ what: contentType, body: text, contentType, code: "UNSUPPORTED_MEDIA_TYPE" }),
    ),
  ];
}

function textsIn(value: Json): readonly string[] {
  if (typeof value === "string") return [value];
  return typeof value === "object" && value !== null ? Object.values(value).flatMap(textsIn) : [];
}
