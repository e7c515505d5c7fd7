import type { Json, JsonObject } from "../action/json.ts";
import { suggest } from "../action/suggestion.ts";
import { type FaultList, quoteInput } from "./fault.ts";
import type {
  ChoiceField,
  Draft,
  Field,
  IntegerField,
  ListField,
  MapField,
  ObjectField,
  StringField,
} from "./field.ts";
import { formats } from "./format.ts";
import { type FileForm, fileSchema } from "./schema.ts";
import { describe, hint, listed, oneOf, outline } from "./wording.ts";
import type { YamlEntry, YamlTree } from "./yaml-tree.ts";

/**
 * Checks a document against the schema and fills in defaults.
 * Each misfit is a fault and leaves `undefined` in its place. Marks the place of every path in `faults`.
 */
export function checkDocument(tree: YamlTree, faults: FaultList): Draft<FileForm> {
  return checkTree<FileForm>(tree, fileSchema, faults);
}

/** The same for another schema; `T` is its form. */
export function checkTree<T>(tree: YamlTree, schema: ObjectField, faults: FaultList): Draft<T> {
  // INVARIANT: the schema's `Form` types describe exactly what `#object` builds from the same schema.
  return new Checker(faults).check(tree, schema, "") as Draft<T>;
}

/** The form of an empty file. */
export function defaultForm(): FileForm {
  return defaultOf(fileSchema) as FileForm;
}

function defaultOf(field: Field): unknown {
  if (field.type !== "object" || field.default === null) return field.default;
  return Object.fromEntries(Object.entries(field.fields).map(([key, member]) => [key, defaultOf(member)]));
}

class Checker {
  readonly #faults: FaultList;

  constructor(faults: FaultList) {
    this.#faults = faults;
  }

  check(tree: YamlTree, field: Field, path: string): unknown {
    this.#faults.mark(path, tree.place);
    switch (field.type) {
      case "boolean":
        return this.#scalar(tree, path, "`true` or `false`", (value) => typeof value === "boolean");
      case "integer":
        return this.#integer(tree, field, path);
      case "string":
        return this.#string(tree, field, path);
      case "choice":
        return this.#choice(tree, field, path);
      case "list":
        return this.#list(tree, field, path);
      case "map":
        return this.#map(tree, field, path);
      case "object":
        return this.#object(tree, field, path);
      case "json":
        return this.#jsonObject(tree, path);
    }
  }

  #scalar(tree: YamlTree, path: string, expected: string, test: (value: Json) => boolean): Json | undefined {
    if (tree.kind === "scalar" && test(tree.value)) return tree.value;
    this.#misfit(path, expected, describe(tree));
    return undefined;
  }

  #integer(tree: YamlTree, { min, max }: IntegerField, path: string): Json | undefined {
    return this.#scalar(
      tree,
      path,
      `an integer from ${min} to ${max}`,
      (value) => typeof value === "number" && Number.isSafeInteger(value) && value >= min && value <= max,
    );
  }

  #string(tree: YamlTree, field: StringField, path: string): string | undefined {
    const { expected, sensitive, test } = formats[field.format];
    if (tree.kind === "scalar" && typeof tree.value === "string" && test(tree.value)) return tree.value;
    const unquoted = tree.kind === "scalar" && (typeof tree.value === "number" || typeof tree.value === "boolean");
    const got = sensitive ? outline(tree) : describe(tree);
    this.#misfit(path, expected, unquoted ? `${got} (quote it to make it a string)` : got);
    return undefined;
  }

  #choice(tree: YamlTree, { values }: ChoiceField, path: string): string | undefined {
    if (tree.kind === "scalar" && typeof tree.value === "string") {
      if (values.includes(tree.value)) return tree.value;
      this.#misfit(path, oneOf(values), describe(tree) + hint(tree.value, values));
    } else this.#misfit(path, oneOf(values), describe(tree));
    return undefined;
  }

  #list(tree: YamlTree, field: ListField, path: string): unknown[] | undefined {
    if (tree.kind !== "list") {
      this.#misfit(path, "a list", describe(tree));
      return undefined;
    }
    if (tree.items.length === 0 && field.whenEmpty !== undefined) {
      this.#misfit(path, "at least one entry", `an empty list (${field.whenEmpty})`);
      return undefined;
    }
    return tree.items.map((item, index) => this.check(item, field.of, `${path}[${index}]`));
  }

  #map(tree: YamlTree, field: MapField, path: string): Record<string, unknown> | undefined {
    const entries = this.#entries(tree, path);
    if (entries === undefined) return undefined;
    const { expected, test } = formats[field.key];
    const members = entries.map(({ key, keyPlace, value }): [string, unknown] => {
      if (!test(key)) this.#faults.add(path, `expected ${expected} as key, got ${quoteInput(key)}`, keyPlace);
      return [key, this.check(value, field.of, join(path, key))];
    });
    return Object.fromEntries(members);
  }

  #object(tree: YamlTree, field: ObjectField, path: string): Record<string, unknown> | undefined {
    const entries = this.#entries(tree, path);
    if (entries === undefined) return undefined;
    this.#refuseUnknown(entries, Object.keys(field.fields), path);
    const given = new Map(entries.map((entry) => [entry.key, entry]));
    const members = Object.entries(field.fields).map(([key, member]): [string, unknown] => [
      key,
      this.#member(given, key, member, path),
    ]);
    return Object.fromEntries(members);
  }

  #member(given: ReadonlyMap<string, YamlEntry>, key: string, field: Field, parent: string): unknown {
    const path = join(parent, key);
    const entry = given.get(key);
    if (field.only !== undefined && !this.#applies(given, key, field.only, parent)) return null;
    if (entry !== undefined) return this.check(entry.value, field, path);
    if (field.required !== true) return defaultOf(field);
    this.#faults.add(path, "expected this key, got nothing");
    return undefined;
  }

  /** Whether a field that belongs to some values of a sibling belongs here; being given elsewhere is a fault. */
  #applies(
    given: ReadonlyMap<string, YamlEntry>,
    key: string,
    only: NonNullable<Field["only"]>,
    parent: string,
  ): boolean {
    const sibling = given.get(only.key)?.value;
    if (sibling?.kind === "scalar" && only.values.some((value) => value === sibling.value)) return true;
    const entry = given.get(key);
    if (entry !== undefined && sibling !== undefined) {
      const text = `expected this key only where \`${only.key}\` is ${oneOf(only.values)}, got it with ${describe(sibling)}`;
      this.#faults.add(join(parent, key), text, entry.keyPlace);
    }
    return false;
  }

  #refuseUnknown(entries: readonly YamlEntry[], known: readonly string[], path: string): void {
    for (const { key, keyPlace } of entries) {
      if (known.includes(key) || key === "<<") continue;
      const near = suggest(key, known);
      const text = near === undefined ? `expected one of ${listed(known)}` : `did you mean \`${near}\`?`;
      this.#faults.add(join(path, key), `unknown key, ${text}`, keyPlace);
    }
  }

  #jsonObject(tree: YamlTree, path: string): JsonObject | undefined {
    const entries = this.#entries(tree, path);
    return entries === undefined ? undefined : (this.#json(tree, path) as JsonObject);
  }

  #json(tree: YamlTree, path: string): Json {
    this.#faults.mark(path, tree.place);
    if (tree.kind === "list") return tree.items.map((item, index) => this.#json(item, `${path}[${index}]`));
    if (tree.kind === "map") {
      return Object.fromEntries(tree.entries.map(({ key, value }) => [key, this.#json(value, join(path, key))]));
    }
    if (!isJsonScalar(tree.value)) this.#misfit(path, "a value JSON can hold exactly", describe(tree));
    return tree.value;
  }

  #entries(tree: YamlTree, path: string): readonly YamlEntry[] | undefined {
    if (tree.kind === "map") return tree.entries;
    this.#misfit(path, "a mapping", describe(tree));
    return undefined;
  }

  #misfit(path: string, expected: string, got: string): void {
    this.#faults.add(path, `expected ${expected}, got ${got}`);
  }
}

function isJsonScalar(value: Json): boolean {
  if (typeof value === "string") return value.isWellFormed();
  if (typeof value !== "number") return true;
  return Number.isFinite(value) && (!Number.isInteger(value) || Number.isSafeInteger(value));
}

function join(path: string, key: string): string {
  return path === "" ? key : `${path}.${key}`;
}
