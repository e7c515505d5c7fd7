import { isJsonObject, type Json, type JsonObject } from "../../action/json.ts";
import { wordsOf } from "./vocabulary.ts";

/** An argument of a tool, as its input schema describes it. */
export interface ToolArgument {
  readonly name: string;
  /** In lower case, without separators. */
  readonly plain: string;
  readonly isRequired: boolean;
  readonly isText: boolean;
  /** The words of an enumeration; empty where it has none. */
  readonly choices: readonly string[];
  readonly format: string;
  readonly description: string;
}

/** Arguments of one tool that are looked at. */
const maxArguments = 200;
const maxDescription = 4_096;

/** The arguments that an input schema names at its top. Those whose names no configuration could state are left out. */
export function argumentsOf({ inputSchema }: JsonObject): readonly ToolArgument[] {
  if (!isJsonObject(inputSchema) || !isJsonObject(inputSchema.properties)) return [];
  const required = new Set(Array.isArray(inputSchema.required) ? inputSchema.required : []);
  return Object.entries(inputSchema.properties)
    .slice(0, maxArguments)
    .filter(([name]) => /^[A-Za-z_][\w.-]{0,127}$/.test(name))
    .map(([name, schema]) => describe(name, schema, required.has(name)));
}

function describe(name: string, schema: Json, isRequired: boolean): ToolArgument {
  const form = isJsonObject(schema) ? schema : {};
  return {
    name,
    plain: wordsOf(name).join(""),
    isRequired,
    isText: isTextSchema(form, 0),
    choices: Array.isArray(form.enum) ? form.enum.filter((each) => typeof each === "string").slice(0, 100) : [],
    format: formatOf(form),
    description: typeof form.description === "string" ? form.description.slice(0, maxDescription) : "",
  };
}

/** Tells whether a value may be a text or a list of texts. A schema that does not say may be anything. */
function isTextSchema({ type, items, anyOf, oneOf }: JsonObject, depth: number): boolean {
  if (depth > 4) return true;
  const forms = [anyOf, oneOf].filter((each) => Array.isArray(each)).flat();
  if (type === undefined)
    return forms.length === 0 || forms.some((form) => isJsonObject(form) && isTextSchema(form, depth + 1));
  const types = Array.isArray(type) ? type : [type];
  if (types.includes("string")) return true;
  return types.includes("array") && (!isJsonObject(items) || isTextSchema(items, depth + 1));
}

function formatOf({ format, items }: JsonObject): string {
  if (typeof format === "string") return format;
  return isJsonObject(items) && typeof items.format === "string" ? items.format : "";
}
