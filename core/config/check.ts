import type { Static, TSchema } from "@sinclair/typebox";
import { Ajv2020, type ErrorObject, type ValidateFunction } from "ajv/dist/2020.js";
import { isJsonObject, type Json, type JsonObject } from "../action/json.ts";
import { suggest } from "../action/suggestion.ts";
import { plainValue, type YamlMap, type YamlNode } from "./document.ts";
import { type FaultList, type Place, quoteInput } from "./fault.ts";
import { formats } from "./format.ts";
import { type Annotations, annotationKeywords, isRequired, type SiblingCondition } from "./schema.ts";
import { isOptional } from "./type.ts";

/** A checked value with holes: what is undefined was a fault, and no later rule may judge it. */
export type Draft<T> = T extends string | number | boolean | null
  ? T | undefined
  : T extends readonly (infer Item)[]
    ? readonly Draft<Item>[] | undefined
    : { readonly [Key in keyof T]: Draft<T[Key]> } | undefined;

/**
 * Checks a document, or a part of one that stands at `path`, against a schema and fills in defaults. Each misfit is a
 * fault and leaves undefined in its place. Marks the place of every key in `faults`.
 */
export function checkDocument<Schema extends TSchema>(
  node: YamlNode,
  schema: Schema,
  faults: FaultList,
  path = "",
): Draft<Static<Schema>> {
  const check = new DocumentCheck(faults);
  check.index({ node, schema, path, pointer: "", keyPlace: node.place });
  const value = plainValue(node);
  for (const { error, pointer } of validationErrors(schema, value)) check.report(error, pointer);
  // INVARIANT: a schema's static type describes exactly what `fill` builds from the same schema.
  return fill(schema, value, "", check.misfits) as Draft<Static<Schema>>;
}

/** A valid value with every default filled in. */
export function withDefaults<Schema extends TSchema>(schema: Schema, value: JsonObject): Static<Schema> {
  return fill(schema, value, "", new Set()) as Static<Schema>;
}

/**
 * The errors of a value, each with the pointer to what it is about. Of a mapping, only the schemas of the keys that it has
 * are compiled: compiling those of the whole configuration takes longer than the rest of a start.
 */
function* validationErrors(schema: TSchema, value: Json): Generator<{ error: ErrorObject; pointer: string }> {
  if (schema.properties === undefined || !isJsonObject(value)) {
    yield* errorsOf(schema, value, "");
    return;
  }
  yield* errorsOf(outlineOf(schema), value, "");
  for (const [key, member] of Object.entries(value)) {
    if (Object.hasOwn(schema.properties, key)) {
      yield* errorsOf(memberSchema(schema, key), member, `/${pointerSegment(key)}`);
    }
  }
}

function errorsOf(schema: TSchema, value: Json, pointer: string): { error: ErrorObject; pointer: string }[] {
  const validate = compileSchema(schema);
  if (validate(value)) return [];
  return (validate.errors ?? []).map((error) => ({ error, pointer: pointer + error.instancePath }));
}

const outlines = new WeakMap<TSchema, TSchema>();

/** The schema of a mapping without those of its members. */
function outlineOf(schema: TSchema): TSchema {
  const known = outlines.get(schema);
  if (known !== undefined) return known;
  const properties = Object.fromEntries(Object.keys(schema.properties).map((key) => [key, {}]));
  const outline = { ...schema, properties } as TSchema;
  outlines.set(schema, outline);
  return outline;
}

let ajv: Ajv2020 | undefined;
const compiled = new WeakMap<TSchema, ValidateFunction>();

/** The validator of a schema, compiled once: strict, with our formats and annotations, reporting every error. */
export function compileSchema(schema: TSchema): ValidateFunction {
  const known = compiled.get(schema);
  if (known !== undefined) return known;
  ajv ??= createValidator();
  const validate = ajv.compile(schema);
  compiled.set(schema, validate);
  return validate;
}

function createValidator(): Ajv2020 {
  const validator = new Ajv2020({
    strict: true,
    strictRequired: false,
    allErrors: true,
    ownProperties: true,
    // Our own schemas are checked by tests; these three options are most of the time that compiling takes.
    validateSchema: false,
    messages: false,
    code: { optimize: false },
  });
  validator.addVocabulary([...annotationKeywords]);
  for (const [name, { test }] of Object.entries(formats)) validator.addFormat(name, { type: "string", validate: test });
  return validator;
}

interface IndexedNode {
  readonly node: YamlNode;
  readonly schema: TSchema & Annotations;
  /** As faults name it: `keys[0].id`. */
  readonly path: string;
  /** As ajv names it: `/keys/0/id`. */
  readonly pointer: string;
  readonly keyPlace: Place;
}

/** Translates a validator's errors about one document into faults. */
class DocumentCheck {
  /** The pointers of values that are faults. */
  readonly misfits = new Set<string>();
  readonly #nodes = new Map<string, IndexedNode>();
  readonly #faults: FaultList;

  constructor(faults: FaultList) {
    this.#faults = faults;
  }

  /** Finds the node, the schema and the path of every pointer. Leaves out keys that do not apply, and all below them. */
  index(at: IndexedNode): void {
    const { node, schema, path, pointer } = at;
    this.#nodes.set(pointer, at);
    this.#faults.mark(path, node.place);
    if (node.kind === "scalar" && node.isFault) this.misfits.add(pointer);
    if (node.kind === "list") {
      node.items.forEach((item, index) => {
        const [below, itemPath] = [schema.items ?? {}, `${path}[${index}]`];
        this.index({ node: item, schema: below, path: itemPath, pointer: `${pointer}/${index}`, keyPlace: item.place });
      });
    }
    if (node.kind !== "map") return;
    for (const [key, { keyPlace, value }] of node.members) {
      const member = memberSchema(schema, key);
      const below = {
        node: value,
        schema: member,
        path: join(path, key),
        pointer: `${pointer}/${pointerSegment(key)}`,
        keyPlace,
      };
      if (this.#applies(below, node)) this.index(below);
    }
    for (const [key, member] of Object.entries<TSchema & Annotations>(schema.properties ?? {})) {
      if (member.onlyWhere === undefined || !isRequired(member) || node.members.has(key)) continue;
      if (isSiblingFit(member.onlyWhere, node)) this.#reportMissing(at, key);
    }
  }

  /** Adds what an error of the validator means; a value has one fault at most. */
  report(error: ErrorObject, pointer: string): void {
    const at = this.#nodes.get(pointer);
    // Errors inside a union and about names are summed up by one of the value itself; `index` has checked conditions.
    if (at === undefined || error.propertyName !== undefined || /\/(?:any|one|all)Of\//.test(error.schemaPath)) return;
    if (error.keyword === "required") this.#reportMissing(at, String(error.params.missingProperty));
    else if (error.keyword === "additionalProperties") this.#reportUnknown(at, String(error.params.additionalProperty));
    else if (error.keyword === "propertyNames") this.#reportName(at, String(error.params.propertyName));
    else if (!this.misfits.has(at.pointer)) {
      this.misfits.add(at.pointer);
      this.#faults.add(at.path, describeMisfit(at, error));
    }
  }

  /** Returns whether a key applies beside its siblings. If not, and the deciding sibling is given, adds a fault. */
  #applies({ schema: { onlyWhere }, path, keyPlace }: IndexedNode, parent: YamlMap): boolean {
    if (onlyWhere === undefined) return true;
    if (isSiblingFit(onlyWhere, parent)) return true;
    const sibling = parent.members.get(onlyWhere.key)?.value;
    if (sibling !== undefined) {
      const expected = `this key only where \`${onlyWhere.key}\` is ${quoteChoices(onlyWhere.values)}`;
      this.#faults.add(path, `expected ${expected}, got it with ${describeNode(sibling)}`, keyPlace);
    }
    return false;
  }

  #reportMissing({ path, pointer }: IndexedNode, key: string): void {
    this.misfits.add(`${pointer}/${pointerSegment(key)}`);
    this.#faults.add(join(path, key), "expected this key, got nothing");
  }

  #reportUnknown({ path, schema, node }: IndexedNode, key: string): void {
    const known = Object.keys(schema.properties ?? {});
    const near = suggest(key, known);
    const hint = near === undefined ? `expected one of ${listed(known)}` : `did you mean \`${near}\`?`;
    this.#faults.add(join(path, key), `unknown key, ${hint}`, keyPlaceOf(node, key));
  }

  #reportName({ path, schema, node }: IndexedNode, key: string): void {
    const message = `expected ${expectedBy(schema.propertyNames)} as key, got ${quoteInput(key)}`;
    this.#faults.add(path, message, keyPlaceOf(node, key));
  }
}

function isSiblingFit({ key, values }: SiblingCondition, parent: YamlMap): boolean {
  const sibling = parent.members.get(key)?.value;
  return sibling?.kind === "scalar" && values.some((value) => value === sibling.value);
}

/** The schema of a key in a mapping; one that accepts anything where the mapping's does not say. */
export function memberSchema(schema: TSchema, key: string): TSchema & Annotations {
  const properties = (schema.properties ?? {}) as Readonly<Record<string, TSchema>>;
  const member = Object.hasOwn(properties, key) ? properties[key] : schema.additionalProperties;
  return typeof member === "object" ? member : ({} as TSchema);
}

function keyPlaceOf(node: YamlNode, key: string): Place | undefined {
  return node.kind === "map" ? node.members.get(key)?.keyPlace : undefined;
}

function describeMisfit({ node, schema }: IndexedNode, { keyword }: ErrorObject): string {
  if (node.kind === "list" && keyword === "minItems" && schema.whenEmpty !== undefined) {
    return `expected at least one entry, got an empty list (${schema.whenEmpty})`;
  }
  if (node.kind === "list" && keyword === "minItems")
    return `expected at least ${schema.minItems} entries, got ${node.items.length}`;
  if (node.kind === "list" && keyword === "maxItems")
    return `expected at most ${schema.maxItems} entries, got ${node.items.length}`;
  const isSensitive = schema.sensitive ?? (schema.format !== undefined && formatOf(schema)?.sensitive === true);
  const got = isSensitive ? outlineNode(node) : describeNode(node);
  return `expected ${expectedBy(schema)}, got ${got}${hintFor(node, schema)}`;
}

function hintFor(node: YamlNode, schema: TSchema): string {
  const { type, enum: words } = schema;
  if (node.kind !== "scalar" || type !== "string") return "";
  if (typeof node.value === "string") return Array.isArray(words) ? didYouMeanHint(node.value, words) : "";
  const [quoted, pattern] = [String(node.value), typeof schema.pattern === "string" ? schema.pattern : ""];
  const fits = formatOf(schema)?.test(quoted) ?? new RegExp(pattern, "u").test(quoted);
  return node.value === null || Array.isArray(words) || !fits ? "" : " (quote it to make it a string)";
}

/** Completes "expected …" for a schema. */
export function expectedBy(schema: TSchema & Annotations): string {
  if (schema.expected !== undefined) return schema.expected;
  if (Array.isArray(schema.enum)) return quoteChoices(schema.enum);
  if (schema.const !== undefined) return `\`${schema.const}\``;
  const { minimum, maximum, minLength = 0, maxLength } = schema;
  switch (schema.type) {
    case "boolean":
      return "`true` or `false`";
    case "integer":
      return maximum === undefined ? "an integer" : `an integer from ${minimum} to ${maximum}`;
    case "array":
      return "a list";
    case "object":
      return "a mapping";
    case "string":
      return (
        formatOf(schema)?.expected ??
        (maxLength === undefined ? "text" : `text of ${minLength} to ${maxLength} characters`)
      );
    default:
      return schema.description ?? "another value";
  }
}

function formatOf({ format }: TSchema): (typeof formats)[keyof typeof formats] | undefined {
  return formats[format as keyof typeof formats];
}

/** A value as a fault names it. */
function describeNode(node: YamlNode): string {
  if (node.kind !== "scalar" || node.value === null) return outlineNode(node);
  return typeof node.value === "string" ? quoteInput(node.value) : `the ${typeof node.value} \`${node.value}\``;
}

/** The same without the value itself: it may be a secret. */
function outlineNode(node: YamlNode): string {
  if (node.kind === "list") return "a list";
  if (node.kind === "map") return "a mapping";
  if (node.value === null) return "nothing";
  return typeof node.value === "string" ? `a string of ${node.value.length} characters` : `a ${typeof node.value}`;
}

/** `a`, `b` or `c`. */
function quoteChoices(values: readonly string[]): string {
  const last = values.at(-1);
  const quoted = values.map((value) => `\`${value}\``);
  return last === undefined || quoted.length < 2 ? quoted.join("") : `${quoted.slice(0, -1).join(", ")} or \`${last}\``;
}

/** `a`, `b`, `c`. */
function listed(values: readonly string[]): string {
  return values.map((value) => `\`${value}\``).join(", ");
}

/** A parenthesis with the known word nearest to `value`, if one is near. */
export function didYouMeanHint(value: string, known: readonly string[]): string {
  const near = suggest(value, known);
  return near === undefined ? "" : ` (did you mean \`${near}\`?)`;
}

/** The value with defaults in place of what is missing, and undefined in place of misfits. */
function fill(schema: TSchema & Annotations, value: Json, pointer: string, misfits: ReadonlySet<string>): unknown {
  if (misfits.has(pointer)) return undefined;
  if (Array.isArray(value)) {
    return value.map((item, index) => fill(schema.items ?? {}, item, pointerBelow(pointer, index, misfits), misfits));
  }
  if (value === null || typeof value !== "object") return value;
  const given = value as Readonly<Record<string, Json>>;
  if (schema.properties === undefined) {
    const members = Object.entries(given).map(([key, member]) => {
      return [key, fill(memberSchema(schema, key), member, pointerBelow(pointer, key, misfits), misfits)];
    });
    return Object.fromEntries(members);
  }
  const filled: Record<string, unknown> = {};
  for (const [key, member] of membersOf(schema)) {
    const below = pointerBelow(pointer, key, misfits);
    if (!isApplicable(member, given)) filled[key] = null;
    else if (Object.hasOwn(given, key)) filled[key] = fill(member, given[key] as Json, below, misfits);
    else if (misfits.has(below)) filled[key] = undefined;
    else {
      const fallback = defaultOf(member);
      if (fallback !== undefined) filled[key] = fallback;
    }
  }
  return filled;
}

const members = new WeakMap<TSchema, readonly (readonly [key: string, schema: TSchema & Annotations])[]>();

/** The keys of a mapping and their schemas. */
function membersOf(schema: TSchema): readonly (readonly [key: string, schema: TSchema & Annotations])[] {
  const known = members.get(schema);
  if (known !== undefined) return known;
  const found = Object.entries<TSchema & Annotations>(schema.properties);
  members.set(schema, found);
  return found;
}

/** The pointer to a member or item, as misfits name them; nobody reads it where there are none. */
function pointerBelow(pointer: string, key: string | number, misfits: ReadonlySet<string>): string {
  if (misfits.size === 0) return pointer;
  return `${pointer}/${typeof key === "number" ? key : pointerSegment(key)}`;
}

function isApplicable({ onlyWhere }: Annotations, siblings: Readonly<Record<string, Json>>): boolean {
  if (onlyWhere === undefined) return true;
  return Object.hasOwn(siblings, onlyWhere.key) && onlyWhere.values.some((value) => value === siblings[onlyWhere.key]);
}

/** The value of a key that is left out: its default, or that of a mapping made of those of its keys. */
function defaultOf(schema: TSchema): unknown {
  if (schema.default !== undefined || schema.properties === undefined) return schema.default;
  if (isOptional(schema)) return undefined;
  return fill(schema, {}, "", new Set());
}

function join(path: string, key: string): string {
  return path === "" ? key : `${path}.${key}`;
}

/** A key as a segment of a JSON pointer. */
function pointerSegment(key: string): string {
  return key.replaceAll("~", "~0").replaceAll("/", "~1");
}
