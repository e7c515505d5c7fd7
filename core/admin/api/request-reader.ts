import type { IncomingMessage } from "node:http";
import type { TSchema } from "@sinclair/typebox";
import { Ajv, type ValidateFunction } from "ajv";
import type { Context } from "koa";
import { GatewayError } from "../../action/error.ts";
import type { Json, JsonObject } from "../../action/json.ts";
import { agentIdentity } from "../../http/access.ts";
import { readJsonBody } from "../../http/request.ts";
import { invalidParams } from "../../operation/fault.ts";
import type { AdminOperation, AdminRequest, BodyLimits, RequestBody } from "../../operation/operation.ts";
import { closed } from "../../operation/shape.ts";

interface Validators {
  readonly name: ValidateFunction | null;
  readonly query: ValidateFunction;
  readonly body: ValidateFunction | null;
}

const noQuery = closed({});

/** Reads requests of the admin port by the schemas of its OpenAPI document. */
export class RequestReader {
  readonly #bodyLimits: BodyLimits;
  readonly #ajv: Ajv;
  readonly #validators = new Map<AdminOperation, Validators>();

  /** `bodyLimits`: of the operations without their own. Schemas are compiled at the first request: a start has no time for all. */
  constructor(bodyLimits: BodyLimits) {
    this.#bodyLimits = bodyLimits;
    const options = { strict: true, verbose: true, useDefaults: true, allowUnionTypes: true, logger: false } as const;
    // The schemas are our own, and tests validate the document that they make.
    this.#ajv = new Ajv({ ...options, validateSchema: false });
  }

  /**
   * Throws NOT_FOUND for a path parameter of a wrong shape, INVALID_PARAMS for an invalid query or body, and what
   * `readJsonBody` throws. Nothing is looked up before the whole request is valid.
   */
  async read(operation: AdminOperation, ctx: Context): Promise<AdminRequest> {
    const validators = this.#validatorsOf(operation);
    const id = readName(operation, ctx, validators.name);
    const query = readQuery(operation, new URLSearchParams(ctx.querystring));
    validate("query", validators.query, query);
    const request = { ...this.empty(ctx), id, query };
    if (operation.body === undefined || validators.body === null) return request;
    const body = await readBody(ctx.req, operation.body, this.#bodyLimits);
    validate("body", validators.body, body);
    return { ...request, body };
  }

  /** Returns a request without input. */
  empty({ req }: Context): AdminRequest {
    return { id: "", query: {}, body: {}, client: agentIdentity(req), accept: req.headers.accept };
  }

  #validatorsOf(operation: AdminOperation): Validators {
    const known = this.#validators.get(operation);
    if (known !== undefined) return known;
    const validators = compile(this.#ajv, operation);
    this.#validators.set(operation, validators);
    return validators;
  }
}

function compile(ajv: Ajv, { params = {}, query = noQuery, body }: AdminOperation): Validators {
  const [name] = Object.values(params);
  return {
    name: name === undefined ? null : ajv.compile(name.schema),
    query: ajv.compile(query),
    body: body === undefined ? null : ajv.compile(body.schema),
  };
}

function readName({ params = {} }: AdminOperation, ctx: Context, isValid: ValidateFunction | null): string {
  const [[key, { absent }] = ["", { absent: "" }]] = Object.entries(params);
  const name = (ctx.params as Readonly<Record<string, string>>)[key] ?? "";
  if (isValid !== null && !isValid(name)) throw new GatewayError("NOT_FOUND", absent);
  return name;
}

/** Converts a query to JSON: numbers, booleans and lists where the schema has them, else text. */
function readQuery({ query = noQuery, repeated = [] }: AdminOperation, search: URLSearchParams): JsonObject {
  const names = [...new Set(search.keys())];
  const properties: Readonly<Record<string, TSchema>> = query.properties;
  return Object.fromEntries(
    names.map((name) => {
      const all = search.getAll(name);
      const schema = Object.hasOwn(properties, name) ? properties[name] : undefined;
      if (repeated.includes(name)) return [name, all];
      if (all.length > 1 && schema !== undefined) {
        throw new GatewayError("INVALID_PARAMS", `expected one \`${name}\`, got ${all.length}`);
      }
      return [name, parseParameter(schema?.type as string | undefined, all[0] as string)];
    }),
  );
}

function parseParameter(type: string | undefined, text: string): Json {
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

function validate(where: "query" | "body", isValid: ValidateFunction, value: Json): void {
  if (!isValid(value)) throw invalidParams(where, isValid.errors?.[0]);
}
