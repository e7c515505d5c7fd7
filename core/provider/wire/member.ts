import { GatewayError } from "../../action/error.ts";
import { isJsonObject, type Json, type JsonObject } from "../../action/json.ts";

/** The code for a member of the wrong type: the client's fault in a request, the provider's in a response. */
type Malformed = "INVALID_REQUEST" | "PROVIDER_INVALID";

const maxName = 64;

/** MODEL_UNTRANSLATABLE for a member without an equivalent in the other API, named by its path. */
export function untranslatable(path: string, reason?: string): GatewayError {
  return new GatewayError("MODEL_UNTRANSLATABLE", `\`${path}\`${reason === undefined ? "" : `: ${reason}`}`, {
    data: { param: path },
  });
}

/** The error for a member of the wrong type, with the type that was expected. */
function malformed(code: Malformed, path: string, expected: string): GatewayError {
  return new GatewayError(code, `\`${path}\`: expected ${expected}`, { data: { param: path } });
}

/**
 * The members of one object that is to be translated. Each is read by name, with the type it must have; `end` refuses
 * the members that were not read, so that no unknown member is lost. Null means absent, as in both APIs.
 */
export class Members {
  readonly path: string;
  readonly #object: JsonObject;
  readonly #malformed: Malformed;
  readonly #taken = new Set<string>();

  constructor(value: Json | undefined, path: string, malformedAs: Malformed) {
    if (!isJsonObject(value)) throw malformed(malformedAs, path, "an object");
    this.path = path;
    this.#object = value;
    this.#malformed = malformedAs;
  }

  /** The path of a member, for errors. */
  at(name: string): string {
    const shown = name.length > maxName ? `${name.slice(0, maxName)}…` : name;
    return this.path === "" ? shown : `${this.path}.${shown}`;
  }

  take(name: string): Json | undefined {
    this.#taken.add(name);
    return Object.hasOwn(this.#object, name) ? (this.#object[name] ?? undefined) : undefined;
  }

  string(name: string): string | undefined {
    const value = this.take(name);
    if (value !== undefined && typeof value !== "string") throw this.expected(name, "a string");
    return value;
  }

  requiredString(name: string): string {
    const value = this.string(name);
    if (value === undefined) throw this.expected(name, "a string");
    return value;
  }

  number(name: string): number | undefined {
    const value = this.take(name);
    if (value !== undefined && typeof value !== "number") throw this.expected(name, "a number");
    return value;
  }

  boolean(name: string): boolean | undefined {
    const value = this.take(name);
    if (value !== undefined && typeof value !== "boolean") throw this.expected(name, "true or false");
    return value;
  }

  list(name: string): readonly Json[] | undefined {
    const value = this.take(name);
    if (value !== undefined && !Array.isArray(value)) throw this.expected(name, "a list");
    return value as readonly Json[] | undefined;
  }

  object(name: string): JsonObject | undefined {
    const value = this.take(name);
    if (value !== undefined && !isJsonObject(value)) throw this.expected(name, "an object");
    return value;
  }

  /** Reads a nested object; undefined where it is absent. */
  members(name: string): Members | undefined {
    const value = this.take(name);
    return value === undefined ? undefined : new Members(value, this.at(name), this.#malformed);
  }

  /** Reads a list of objects; empty where it is absent. */
  items(name: string): readonly Members[] {
    return (this.list(name) ?? []).map(
      (item, index) => new Members(item, `${this.at(name)}[${index}]`, this.#malformed),
    );
  }

  /** Reads a member that may only have a default value, which the other API expresses by absence: one of `values`, or empty. */
  neutral(name: string, ...values: readonly Json[]): void {
    const value = this.take(name);
    if (value !== undefined && !values.includes(value) && !isEmpty(value)) throw untranslatable(this.at(name));
  }

  expected(name: string, what: string): GatewayError {
    return malformed(this.#malformed, this.at(name), what);
  }

  /** Throws MODEL_UNTRANSLATABLE for the first member that was not read. */
  end(): void {
    for (const [name, value] of Object.entries(this.#object)) {
      if (value !== null && !this.#taken.has(name)) throw untranslatable(this.at(name));
    }
  }
}

function isEmpty(value: Json): boolean {
  return Array.isArray(value) ? value.length === 0 : isJsonObject(value) && Object.keys(value).length === 0;
}
