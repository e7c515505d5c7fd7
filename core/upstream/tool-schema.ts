import { isJsonObject, type Json, type JsonObject } from "../kernel/json.ts";
import { valueAt } from "../kernel/json-pointer.ts";

const mostSubschemas = 10_000;
const deepest = 64;

/** Keywords whose subschemas judge the same instance: following them makes no progress through the data. */
const inPlace: readonly string[] = ["allOf", "anyOf", "oneOf", "not", "if", "then", "else", "dependentSchemas"];
const references: readonly string[] = ["$ref", "$dynamicRef", "$recursiveRef"];

/**
 * Why a JSON Schema must not be handed to clients; undefined when it may.
 * A reference to anything but the schema itself is refused, and so is one that only ever leads back to itself: clients
 * fetch the first and never finish the second. Nothing is fetched here.
 */
export function schemaFault(schema: Json): string | undefined {
  const survey = new SchemaSurvey();
  const fault = survey.walk(schema, 0);
  return fault ?? survey.cycle(schema);
}

class SchemaSurvey {
  readonly #referring: JsonObject[] = [];
  readonly #anchors: Map<string, JsonObject> = new Map();
  #count = 0;

  /** Visits every object once and remembers those that refer. Returns the first fault. */
  walk(value: Json, depth: number): string | undefined {
    if (typeof value !== "object" || value === null) return undefined;
    if (depth > deepest) return `its schema is more than ${deepest} levels deep`;
    if (isJsonObject(value)) {
      if (++this.#count > mostSubschemas) return `its schema has more than ${mostSubschemas} subschemas`;
      const fault = this.#noteReferences(value);
      if (fault !== undefined) return fault;
    }
    for (const member of Object.values(value)) {
      const fault = this.walk(member as Json, depth + 1);
      if (fault !== undefined) return fault;
    }
    return undefined;
  }

  #noteReferences(schema: JsonObject): string | undefined {
    for (const keyword of references) {
      const target = schema[keyword];
      if (typeof target !== "string") continue;
      if (!target.startsWith("#")) return "its schema refers to another document";
      if (!this.#referring.includes(schema)) this.#referring.push(schema);
    }
    for (const keyword of ["$anchor", "$dynamicAnchor"]) {
      const anchor = schema[keyword];
      if (typeof anchor === "string") this.#anchors.set(anchor, schema);
    }
    return undefined;
  }

  /** Looks for a way from a schema back to itself through references and in-place keywords alone. */
  cycle(root: Json): string | undefined {
    const done: Set<JsonObject> = new Set();
    const onPath: Set<JsonObject> = new Set();
    for (const start of this.#referring) {
      const stack: { readonly schema: JsonObject; readonly next: readonly JsonObject[]; at: number }[] = [];
      const enter = (schema: JsonObject): void => {
        onPath.add(schema);
        stack.push({ schema, next: this.#edges(root, schema), at: 0 });
      };
      if (!done.has(start)) enter(start);
      for (let top = stack.at(-1); top !== undefined; top = stack.at(-1)) {
        const next = top.next[top.at++];
        if (next === undefined) {
          onPath.delete(top.schema);
          done.add(top.schema);
          stack.pop();
        } else if (onPath.has(next)) return "its schema has a reference that leads back to itself";
        else if (!done.has(next)) enter(next);
      }
    }
    return undefined;
  }

  #edges(root: Json, schema: JsonObject): readonly JsonObject[] {
    const targets: (Json | undefined)[] = [];
    for (const keyword of references) {
      const target = schema[keyword];
      if (typeof target === "string") targets.push(this.#resolve(root, target));
    }
    for (const keyword of inPlace) {
      const below = schema[keyword];
      if (keyword === "dependentSchemas" && isJsonObject(below)) targets.push(...Object.values(below));
      else if (Array.isArray(below)) targets.push(...below);
      else targets.push(below);
    }
    return targets.filter(isJsonObject);
  }

  /** The place a local reference points to; undefined where there is none, which harms nobody. */
  #resolve(root: Json, reference: string): Json | undefined {
    const fragment = safeDecode(reference.slice(1));
    if (fragment === "") return root;
    if (!fragment.startsWith("/")) return this.#anchors.get(fragment);
    return valueAt(root, fragment);
  }
}

function safeDecode(fragment: string): string {
  try {
    return decodeURIComponent(fragment);
  } catch {
    return fragment; // not percent-encoding, so it stands for itself
  }
}
