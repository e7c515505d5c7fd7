import { Ajv2020, type ValidateFunction } from "ajv/dist/2020.js";
import { isJsonObject, type Json, type JsonObject } from "../../core/action/json.ts";

/** How one operation of the document answers with a status. */
interface Response {
  readonly content: Readonly<Record<string, { readonly schema?: JsonObject }>>;
}

export interface DescribedOperation {
  readonly operationId: string;
  readonly responses: Readonly<Record<string, Response>>;
}

/** The OpenAPI document as far as tests read it. */
export interface ApiDocument {
  readonly openapi: string;
  readonly info: { readonly version: string };
  readonly paths: Readonly<Record<string, Readonly<Record<string, DescribedOperation>>>>;
  readonly components: { readonly schemas: JsonObject };
}

const own = '"#/components/schemas/';

/**
 * Compares answers with what the document says of them. Where it names the members of an object, an answer may have no
 * other: what is told is described.
 */
export class AnswerCheck {
  readonly #document: ApiDocument;
  readonly #ajv: Ajv2020;
  readonly #compiled = new WeakMap<JsonObject, ValidateFunction>();

  constructor(document: ApiDocument) {
    this.#document = document;
    this.#ajv = new Ajv2020({
      strict: true,
      allowUnionTypes: true,
      logger: false,
      allErrors: true,
      inlineRefs: false,
      code: { optimize: false },
    });
    const moment = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z$/;
    this.#ajv.addFormat("date-time", moment).addFormat("date", /^\d{4}-\d\d-\d\d$/);
    const schemas = JSON.parse(JSON.stringify(document.components.schemas).replaceAll(own, '"#/$defs/')) as JsonObject;
    this.#ajv.addSchema({ $id: "document", $defs: closeAll(schemas) });
  }

  /** What is wrong with an answer; empty where it is as described. */
  faults(method: string, path: string, status: number, type: string, body: unknown): readonly string[] {
    const operation = this.#document.paths[path]?.[method.toLowerCase()];
    const response = operation?.responses[String(status)];
    if (response === undefined) return [`${method} ${path} answers ${status}, which is not described`];
    const [media = ""] = type.split(";");
    const described = response.content[media];
    if (described === undefined) return [`${method} ${path} answers \`${media}\`, which is not described`];
    if (described.schema === undefined) return [];
    const fits = this.#compile(described.schema);
    return fits(body) ? [] : (fits.errors ?? []).map(({ instancePath, message }) => `${instancePath} ${message}`);
  }

  #compile(schema: JsonObject): ValidateFunction {
    const known = this.#compiled.get(schema);
    if (known !== undefined) return known;
    const text = JSON.stringify(closeAll(schema)).replaceAll(own, '"document#/$defs/');
    const validate = this.#ajv.compile(JSON.parse(text) as JsonObject);
    this.#compiled.set(schema, validate);
    return validate;
  }
}

/** The schema with every object closed that names its members. */
function closeAll(schema: Json): Json {
  if (Array.isArray(schema)) return schema.map(closeAll);
  if (!isJsonObject(schema)) return schema;
  const closed = Object.fromEntries(Object.entries(schema).map(([name, value]) => [name, closeAll(value)]));
  const names = isJsonObject(schema.properties) && schema.type === "object";
  return names && schema.additionalProperties === undefined ? { ...closed, additionalProperties: false } : closed;
}
