import { isJsonObject, type Json, type JsonObject } from "../../action/json.ts";
import { EngineError } from "../engine-fault.ts";
import type { CedarValueJson } from "./library.ts";

/** A type of a Cedar schema, with every name resolved. */
export type CedarShape =
  | { readonly kind: "text" | "long" | "bool" | "decimal" }
  | { readonly kind: "extension"; readonly name: string }
  | { readonly kind: "entity"; readonly name: string }
  | { readonly kind: "set"; readonly element: CedarShape }
  | RecordShape;

export interface RecordShape {
  readonly kind: "record";
  readonly members: readonly { readonly name: string; readonly shape: CedarShape; readonly isRequired: boolean }[];
}

const extensions: readonly string[] = ["ipaddr", "datetime", "duration"];
const plain: Readonly<Record<string, CedarShape>> = {
  String: { kind: "text" },
  Long: { kind: "long" },
  Boolean: { kind: "bool" },
  Bool: { kind: "bool" },
  decimal: { kind: "decimal" },
};

/**
 * Reads a type as `schemaToJsonWithResolvedTypes` writes it. Throws RangeError for a type that the gateway cannot fill: Cedar
 * has checked that every name is defined and that no type contains itself.
 */
export function readShape(type: unknown, commonTypes: JsonObject): CedarShape {
  if (!isJsonObject(type) || typeof type.type !== "string") throw unusable(type);
  const { type: word, element, attributes, name } = type;
  if (word === "Set") return { kind: "set", element: readShape(element, commonTypes) };
  if (word === "Record") return readRecord(attributes, commonTypes);
  if (word === "Entity") return { kind: "entity", name: String(name) };
  const given = word === "EntityOrCommon" || word === "Extension" ? String(name) : word;
  const bare = given.replace(/^__cedar::/, "");
  if (Object.hasOwn(commonTypes, given)) return readShape(commonTypes[given], commonTypes);
  if (Object.hasOwn(plain, bare)) return plain[bare] as CedarShape;
  if (extensions.includes(bare)) return { kind: "extension", name: bare === "ipaddr" ? "ip" : bare };
  throw unusable(type);
}

function readRecord(attributes: Json | undefined, commonTypes: JsonObject): RecordShape {
  const members = Object.entries(isJsonObject(attributes) ? attributes : {}).map(([name, type]) => ({
    name,
    shape: readShape(type, commonTypes),
    isRequired: !(isJsonObject(type) && type.required === false),
  }));
  return { kind: "record", members };
}

function unusable(type: unknown): RangeError {
  return new RangeError(`expected a type that the gateway can fill, got ${JSON.stringify(type).slice(0, 128)}`);
}

/** Bounds of the values of one request. */
const maxValues = 4_096;
const maxCharacters = 65_536;

/**
 * Makes Cedar values of JSON. Only the members that the schema declares are read: no policy that passed the check against
 * the schema can name another. A declared member of another type than declared, or a missing one that is required, throws
 * EngineError, and so do more than 4,096 values or 65,536 characters in one request.
 */
export class CedarReader {
  #values = 0;
  #characters = 0;
  /** The entities that the values name, as `type::"id"`. */
  readonly entities = new Set<string>();

  /** `place` names the value in faults, such as `context.arguments`. */
  read(value: Json, shape: CedarShape, place: string): CedarValueJson {
    this.#values += 1;
    if (this.#values > maxValues) throw tooLarge(`${maxValues} values`);
    switch (shape.kind) {
      case "record":
        return this.readRecord(value, shape, place);
      case "set":
        if (!Array.isArray(value)) throw mismatch(place, "Set", value);
        return value.map((item: Json) => this.read(item, shape.element, `${place}[]`));
      case "long":
        // Cedar's integers have 64 bits; beyond 2^53 a JSON number may not be the one that was written.
        if (!Number.isSafeInteger(value)) throw mismatch(place, "Long", value);
        return value as number;
      case "bool":
        if (typeof value !== "boolean") throw mismatch(place, "Bool", value);
        return value;
      case "decimal":
        return { __extn: { fn: "decimal", arg: this.#decimalText(value, place) } };
      case "text":
        return this.#text(value, place, "String");
      case "extension":
        return { __extn: { fn: shape.name, arg: this.#text(value, place, shape.name) } };
      case "entity":
        return this.#entity(this.#text(value, place, `the id of ${shape.name}`), shape.name);
    }
  }

  /** Reads the declared members of an object; null counts as absent. */
  readRecord(value: Json, { members }: RecordShape, place: string): Record<string, CedarValueJson> {
    if (!isJsonObject(value)) throw mismatch(place, "Record", value);
    const read: [string, CedarValueJson][] = [];
    for (const { name, shape, isRequired } of members) {
      const member = Object.hasOwn(value, name) ? value[name] : undefined;
      if (member !== undefined && member !== null) read.push([name, this.read(member, shape, `${place}.${name}`)]);
      else if (isRequired) throw new EngineError("input", `expected \`${place}.${name}\`, which the schema requires`);
    }
    return Object.fromEntries(read);
  }

  #text(value: Json, place: string, expected: string): string {
    if (typeof value !== "string") throw mismatch(place, expected, value);
    this.#characters += value.length;
    if (this.#characters > maxCharacters) throw tooLarge(`${maxCharacters} characters`);
    return value;
  }

  /** A decimal of Cedar has four places. A number that has more is not rounded. */
  #decimalText(value: Json, place: string): string {
    if (typeof value === "string") return this.#text(value, place, "decimal");
    const text = typeof value === "number" && Math.abs(value) < 2 ** 39 ? value.toFixed(4) : "";
    if (Number(text) !== value) throw mismatch(place, "a decimal of at most four places", value);
    return text;
  }

  #entity(id: string, type: string): CedarValueJson {
    this.entities.add(entityKey(type, id));
    return { __entity: { type, id } };
  }
}

/** The name of an entity in sets and maps. */
export function entityKey(type: string, id: string): string {
  return `${type}::${JSON.stringify(id)}`;
}

function mismatch(place: string, expected: string, value: Json): EngineError {
  const got = value === null ? "null" : Array.isArray(value) ? "a list" : typeof value;
  const number = typeof value === "number" ? "a number that is none" : `a value of type ${got}`;
  return new EngineError("input", `expected ${expected} in \`${place}\`, as the schema declares, got ${number}`);
}

function tooLarge(bound: string): EngineError {
  return new EngineError("input", `expected at most ${bound} in the members that the schema declares`);
}
