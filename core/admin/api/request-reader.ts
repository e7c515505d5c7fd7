import type { IncomingMessage } from "node:http";
import { Ajv, type ValidateFunction } from "ajv";
import type { Context } from "koa";
import { GatewayError } from "../../action/error.ts";
import type { Json, JsonObject } from "../../action/json.ts";
import { type BodyLimits, readJsonBody } from "../../http/body.ts";
import { faultOf } from "../../operation/fault.ts";
import type { AdminRouteId, Operation, PathParameter, QueryParameter, RequestBody } from "../../operation/operation.ts";
import type { Asked } from "../../operation/request.ts";
import { operations } from "./table.ts";

interface Checks {
  readonly name: ValidateFunction | null;
  readonly query: ValidateFunction;
  readonly body: ValidateFunction | null;
}

/** Reads requests of the admin port by the schemas that its document shows. */
export class RequestReader {
  readonly #bodyLimits: BodyLimits;
  readonly #checks = new Map<AdminRouteId, Checks>();

  /** Compiles every schema. `bodyLimits`: of the operations that have none of their own. */
  constructor(bodyLimits: BodyLimits) {
    this.#bodyLimits = bodyLimits;
    const ajv = new Ajv({ strict: true, verbose: true, useDefaults: true, allowUnionTypes: true, logger: false });
    for (const [id, operation] of Object.entries(operations) as [AdminRouteId, Operation][]) {
      this.#checks.set(id, compile(ajv, operation));
    }
  }

  /**
   * Throws NOT_FOUND for a name in the path that nothing can have, INVALID_PARAMS for what does not fit, and what
   * `readJsonBody` throws. Nothing is known of what a path names before the whole request fits.
   */
  async read(id: AdminRouteId, ctx: Context): Promise<Asked> {
    const { params = {}, query = {}, body } = operations[id];
    const checks = this.#checks.get(id) as Checks;
    const name = readName(params, ctx, checks.name);
    const asked = readQuery(query, new URLSearchParams(ctx.querystring));
    check("query", checks.query, asked);
    if (body === undefined || checks.body === null) return { id: name, query: asked, body: {} };
    const said = await readBody(ctx.req, body, this.#bodyLimits);
    check("body", checks.body, said);
    return { id: name, query: asked, body: said };
  }
}

/** The schema of a whole query. */
function querySchema(query: Readonly<Record<string, QueryParameter>>): JsonObject {
  const members = Object.entries(query);
  return {
    type: "object",
    additionalProperties: false,
    properties: Object.fromEntries(members.map(([name, { schema }]) => [name, schema])),
    required: members.flatMap(([name, { required }]) => (required === true ? [name] : [])),
  };
}

function compile(ajv: Ajv, { params = {}, query = {}, body }: Operation): Checks {
  const [name] = Object.values(params);
  return {
    name: name === undefined ? null : ajv.compile(name.schema),
    query: ajv.compile(querySchema(query)),
    body: body === undefined ? null : ajv.compile(body.schema),
  };
}

function readName(
  params: Readonly<Record<string, PathParameter>>,
  ctx: Context,
  fits: ValidateFunction | null,
): string {
  const [[key, { absent }] = ["", { absent: "" }]] = Object.entries(params);
  const name = (ctx.params as Readonly<Record<string, string>>)[key] ?? "";
  if (fits !== null && !fits(name)) throw new GatewayError("NOT_FOUND", absent);
  return name;
}

/** The values of a query as JSON: numbers, flags and lists where the schema has them, and text as it stands else. */
function readQuery(query: Readonly<Record<string, QueryParameter>>, search: URLSearchParams): JsonObject {
  const names = [...new Set(search.keys())];
  return Object.fromEntries(
    names.map((name) => {
      const all = search.getAll(name);
      const parameter = Object.hasOwn(query, name) ? query[name] : undefined;
      if (parameter?.repeated === true) return [name, all];
      if (all.length > 1 && parameter !== undefined) {
        throw new GatewayError("INVALID_PARAMS", `expected one \`${name}\`, got ${all.length}`);
      }
      return [name, jsonOf(parameter?.schema.type, all[0] as string)];
    }),
  );
}

function jsonOf(type: Json | undefined, text: string): Json {
  if (type === "integer" && /^-?\d{1,15}$/.test(text)) return Number(text);
  if (type === "boolean" && (text === "true" || text === "false")) return text === "true";
  return type === "array" ? text.split(",") : text;
}

function readBody(request: IncomingMessage, body: RequestBody, usual: BodyLimits): Promise<Json> {
  if (!body.required && !hasBody(request)) return Promise.resolve({});
  return readJsonBody(request, body.limits ?? usual);
}

function hasBody({ headers }: IncomingMessage): boolean {
  return headers["transfer-encoding"] !== undefined || Number(headers["content-length"] ?? 0) > 0;
}

function check(where: "query" | "body", fits: ValidateFunction, value: Json): void {
  if (!fits(value)) throw faultOf(where, fits.errors?.[0]);
}
