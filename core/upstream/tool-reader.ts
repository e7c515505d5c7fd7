import { canonicalJson, contentDigest } from "../action/canonical-json.ts";
import { type Capability, contradictingHint, resolveCapability } from "../action/capability.ts";
import { GlobTable } from "../action/glob.ts";
import { isJsonObject, type Json, type JsonObject } from "../action/json.ts";
import { valueAt } from "../action/json-pointer.ts";
import { toolNamePattern } from "../action/json-rpc.ts";
import type { UpstreamSettings } from "../config/gateway-config.ts";
import type { PublishedTool } from "../definition/published-tool.ts";
import type { Contradiction } from "./connection.ts";
import { type ParamHeader, paramHeadersOf } from "./mcp-header.ts";

/** A tool as clients may see and call it, where its definition is not withheld. */
export interface ListedTool extends PublishedTool {
  readonly annotations: JsonObject;
  readonly capability: Capability;
  /** The arguments that a stateless client must repeat in headers when it calls the tool. */
  readonly paramHeaders: readonly ParamHeader[];
}

const maxDefinition = 1024 * 1024;
const maxKept = 10_000;
const maxContradictions = 1_000;
const maxKeptCharacters = 32 * 1024 * 1024;

/** Reads the tool definitions of one upstream, each distinct definition once for all of its sessions. */
export class ToolReader {
  readonly #settings: UpstreamSettings;
  /** As the operator states them. */
  readonly #capabilities: GlobTable<Capability>;
  readonly #known: Map<string, ListedTool | string> = new Map();
  #keptCharacters = 0;
  readonly #contradictions: Map<string, Contradiction> = new Map();
  /** The exposed names of the tools that were read. */
  readonly #names: Set<string> = new Set();
  readonly #paramHeaders: Map<string, readonly ParamHeader[]> = new Map();

  constructor(settings: UpstreamSettings) {
    this.#settings = settings;
    this.#capabilities = new GlobTable(settings.capabilities);
  }

  /** Returns the tool, or the reason for which it is hidden from clients. */
  read(definition: JsonObject): ListedTool | string {
    const text = JSON.stringify(definition);
    if (text.length > maxDefinition) return `the definition is longer than ${maxDefinition} characters`;
    const key = contentDigest(text);
    const known = this.#known.get(key);
    if (known !== undefined) return known;
    const read = this.#readTool(definition);
    this.#keptCharacters += text.length;
    if (this.#known.size >= maxKept || this.#keptCharacters > maxKeptCharacters) {
      this.#known.clear();
      this.#keptCharacters = text.length;
    }
    this.#known.set(key, read);
    return read;
  }

  /** Returns the arguments that the stateless revision requires in headers when this tool is called. */
  paramHeaders(tool: string): readonly ParamHeader[] {
    return this.#paramHeaders.get(tool) ?? [];
  }

  /** The tools whose annotations claim more than the operator stated, as they were last read. */
  get contradictions(): readonly Contradiction[] {
    return [...this.#contradictions.values()];
  }

  /** Returns whether a tool of this upstream can have the exposed name. */
  mayList(exposedName: string): boolean {
    return exposedName.startsWith(this.#settings.toolPrefix);
  }

  /** Returns whether the exposed name is of this upstream: it has its prefix, or was in a list of it. */
  hasListed(exposedName: string): boolean {
    const { toolPrefix } = this.#settings;
    return toolPrefix === "" ? this.#names.has(exposedName) : exposedName.startsWith(toolPrefix);
  }

  #readTool(definition: JsonObject): ListedTool | string {
    const { name, inputSchema, outputSchema } = definition;
    const { name: upstream, toolPrefix, trustAnnotations } = this.#settings;
    const exposedName = `${toolPrefix}${String(name)}`;
    if (typeof name !== "string" || !toolNamePattern.test(name) || !toolNamePattern.test(exposedName)) {
      return "the name is not 1 to 128 letters, digits, `_`, `-` or `.`";
    }
    // What policy is shown of a definition must be what clients are shown.
    const misread = (["title", "description"] as const).find((member) => !isTextOrAbsent(definition[member]));
    if (misread !== undefined) return `the ${misread} is not a text`;
    if (!isJsonObject(inputSchema)) return "the tool has no input schema";
    if (outputSchema !== undefined && !isJsonObject(outputSchema)) return "the output schema is not an object";
    const fault = schemaFault(inputSchema) ?? (outputSchema === undefined ? undefined : schemaFault(outputSchema));
    if (fault !== undefined) return fault;
    const annotations = isJsonObject(definition.annotations) ? definition.annotations : {};
    const claims = { configured: this.#capabilities.get(name), annotations: hints(annotations), trustAnnotations };
    this.#noteContradiction(name, claims);
    if (this.#names.size >= maxKept) this.#names.clear();
    this.#names.add(exposedName);
    if (this.#paramHeaders.size >= maxKept) this.#paramHeaders.clear();
    const paramHeaders = paramHeadersOf(inputSchema);
    this.#paramHeaders.set(name, paramHeaders);
    return {
      exposedName,
      name,
      upstream,
      definition: toolPrefix === "" ? definition : { ...definition, name: exposedName },
      digest: contentDigest(canonicalJson(definition)),
      standings: new Map(),
      annotations,
      capability: resolveCapability(claims),
      paramHeaders,
    };
  }

  #noteContradiction(tool: string, claims: Parameters<typeof contradictingHint>[0]): void {
    const annotated = contradictingHint(claims);
    this.#contradictions.delete(tool);
    if (annotated === undefined || claims.configured === undefined) return;
    if (this.#contradictions.size >= maxContradictions) this.#contradictions.clear();
    this.#contradictions.set(tool, { tool, stated: claims.configured, annotated });
  }
}

function isTextOrAbsent(value: Json | undefined): boolean {
  return value === undefined || typeof value === "string";
}

function hints(annotations: JsonObject): { readonly readOnlyHint?: boolean; readonly destructiveHint?: boolean } {
  const flag = (value: Json | undefined): boolean | undefined => (typeof value === "boolean" ? value : undefined);
  const readOnlyHint = flag(annotations.readOnlyHint);
  const destructiveHint = flag(annotations.destructiveHint);
  return {
    ...(readOnlyHint === undefined ? {} : { readOnlyHint }),
    ...(destructiveHint === undefined ? {} : { destructiveHint }),
  };
}

const maxSubschemas = 10_000;
const maxDepth = 64;

/** Keywords whose subschemas apply to the same instance: following them makes no progress through the data. */
const inPlace: readonly string[] = ["allOf", "anyOf", "oneOf", "not", "if", "then", "else", "dependentSchemas"];
const references: readonly string[] = ["$ref", "$dynamicRef", "$recursiveRef"];

/**
 * Returns the reason for which a JSON Schema must not be shown to clients; undefined where it may be.
 * References to another document are refused, because clients fetch them, and so are references that only lead back to
 * themselves, because clients never finish them. Fetches nothing.
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

  /** Visits every object once and collects those with references. Returns the first fault. */
  walk(value: Json, depth: number): string | undefined {
    if (typeof value !== "object" || value === null) return undefined;
    if (depth > maxDepth) return `the schema is more than ${maxDepth} levels deep`;
    if (isJsonObject(value)) {
      if (++this.#count > maxSubschemas) return `the schema has more than ${maxSubschemas} subschemas`;
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
      if (!target.startsWith("#")) return "the schema refers to another document";
      if (!this.#referring.includes(schema)) this.#referring.push(schema);
    }
    for (const keyword of ["$anchor", "$dynamicAnchor"]) {
      const anchor = schema[keyword];
      if (typeof anchor === "string") this.#anchors.set(anchor, schema);
    }
    return undefined;
  }

  /** Finds a path from a schema back to itself through references and in-place keywords alone. */
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
        } else if (onPath.has(next)) return "the schema has a reference that leads back to itself";
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

  /** Resolves a local reference; undefined where it leads nowhere, which is harmless. */
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
    return fragment; // not percent-encoded: used literally
  }
}
