import type { Json, JsonObject } from "./json.ts";

/** The members a JSON Pointer (RFC 6901) names, one below the other. */
export function namesOfPointer(pointer: string): string[] {
  if (pointer === "") return [];
  return pointer
    .slice(1)
    .split("/")
    .map((name) => name.replaceAll("~1", "/").replaceAll("~0", "~"));
}

/** The pointer to a member of what `pointer` leads to. */
export function memberPointer(pointer: string, name: string): string {
  return `${pointer}/${name.replaceAll("~", "~0").replaceAll("/", "~1")}`;
}

/** The value a pointer leads to; undefined where there is none. */
export function valueAt(root: Json, pointer: string): Json | undefined {
  let value: Json | undefined = root;
  for (const name of namesOfPointer(pointer)) {
    if (typeof value !== "object" || value === null || !Object.hasOwn(value, name)) return undefined;
    value = (value as Readonly<Record<string, Json>>)[name];
  }
  return value;
}

/**
 * An object that has each value where its pointer leads to. Whole numbers name items of arrays, whose other items are
 * null. Throws RangeError for an item beyond the first 1,024.
 */
export function buildFromPointers(entries: readonly (readonly [pointer: string, value: Json])[]): JsonObject {
  const root: Branch = { isArray: false, members: new Map() };
  for (const [pointer, value] of entries) place(root, namesOfPointer(pointer), value);
  return Object.fromEntries(grown(root));
}

interface Branch {
  readonly isArray: boolean;
  readonly members: Map<string, Branch | Json>;
}

const maxItems = 1_024;
const itemName = /^(?:0|[1-9]\d*)$/;

function place(branch: Branch, names: readonly string[], value: Json): void {
  const [name, next, ...rest] = names;
  if (name === undefined) throw new TypeError("buildFromPointers: expected a pointer below the root");
  if (branch.isArray && !(itemName.test(name) && Number(name) < maxItems)) {
    throw new RangeError(`expected one of the first ${maxItems} items`);
  }
  if (next === undefined) {
    branch.members.set(name, value);
    return;
  }
  const known = branch.members.get(name);
  const below: Branch = isBranch(known) ? known : { isArray: itemName.test(next), members: new Map() };
  branch.members.set(name, below);
  place(below, [next, ...rest], value);
}

function grown({ members }: Branch): readonly (readonly [name: string, value: Json])[] {
  return [...members].map(([name, value]) => [name, isBranch(value) ? grow(value) : value] as const);
}

function grow(branch: Branch): Json {
  const values = grown(branch);
  if (!branch.isArray) return Object.fromEntries(values);
  const items: Json[] = new Array(Math.max(...values.map(([name]) => Number(name))) + 1).fill(null);
  for (const [name, value] of values) items[Number(name)] = value;
  return items;
}

function isBranch(value: Branch | Json | undefined): value is Branch {
  return typeof value === "object" && value !== null && "members" in value && value.members instanceof Map;
}
