import { isJsonObject, type Json, type JsonObject } from "../../core/action/json.ts";

/** A value that a schema does not let through, and what is wrong with it. */
export interface SchemaFault {
  readonly what: string;
  readonly value: Json;
}

/** The words of JSON Schema that faults are made of, or that say nothing of what is let through. */
export const knownWords: ReadonlySet<string> = new Set(
  "type properties required additionalProperties items minItems maxItems uniqueItems enum minimum maximum minLength maxLength pattern description default".split(
    " ",
  ),
);

/** Longer than whatever a pattern of ours takes, and within what a body may hold. */
const long = 600;

/** Every way in which a value may miss its schema, one at a time; `good` is one that fits. */
export function faultsOf(schema: JsonObject, good: Json): readonly SchemaFault[] {
  const wrong = typeFault(schema);
  return [
    ...(wrong === undefined ? [] : [{ what: "of another type", value: wrong }]),
    ...scalarFaults(schema),
    ...(Array.isArray(good) ? listFaults(schema, good) : []),
    ...(isJsonObject(good) ? objectFaults(schema, good) : []),
  ];
}

function typeFault({ type }: JsonObject): Json | undefined {
  if (type === undefined) return undefined;
  const types = [type].flat();
  return types.includes("string") ? 7 : "text";
}

function scalarFaults({
  type,
  enum: words,
  minimum,
  maximum,
  minLength,
  maxLength,
  pattern,
}: JsonObject): SchemaFault[] {
  const faults: SchemaFault[] = [];
  const add = (what: string, value: Json): unknown => faults.push({ what, value });
  if (Array.isArray(words)) add("none of the words", "none-of-them");
  if (typeof minimum === "number") add("too little", minimum - 1);
  if (typeof maximum === "number") add("too much", maximum + 1);
  if (type === "integer") add("a fraction", 1.5);
  if (pattern !== undefined || minLength === 1) add("empty", "");
  if (typeof maxLength === "number") add("too long", "x".repeat(maxLength + 1));
  else if (typeof pattern === "string" && /,\d+\}/.test(pattern)) add("too long", "x".repeat(long));
  return faults;
}

function listFaults({ items, minItems, maxItems, uniqueItems }: JsonObject, good: readonly Json[]): SchemaFault[] {
  const [first = "x"] = good;
  const faults: SchemaFault[] = [];
  if (typeof minItems === "number" && minItems > 0) faults.push({ what: "without items", value: [] });
  if (typeof maxItems === "number") faults.push({ what: "too many", value: Array(maxItems + 1).fill(first) });
  if (uniqueItems === true) faults.push({ what: "one twice", value: [first, first] });
  const inside = faultsOf(items as JsonObject, first);
  return [...faults, ...inside.map(({ what, value }) => ({ what: `an item: ${what}`, value: [...good, value] }))];
}

function objectFaults(
  { properties = {}, required = [], additionalProperties }: JsonObject,
  good: JsonObject,
): SchemaFault[] {
  const faults: SchemaFault[] = [];
  for (const name of required as readonly string[]) {
    const { [name]: _left, ...rest } = good;
    faults.push({ what: `without ${name}`, value: rest });
  }
  if (additionalProperties === false) faults.push({ what: "a member more", value: { ...good, surplus: 1 } });
  for (const [name, schema] of Object.entries(properties as JsonObject)) {
    if (!isJsonObject(schema)) continue; // `true`: whatever it is
    const inside = faultsOf(schema, good[name] ?? null);
    faults.push(...inside.map(({ what, value }) => ({ what: `${name}: ${what}`, value: { ...good, [name]: value } })));
  }
  return faults;
}

/** Every word that stands in a schema as a keyword. */
export function wordsOf(schema: Json): readonly string[] {
  if (!isJsonObject(schema)) return [];
  const { properties, items } = schema;
  const inside = isJsonObject(properties) ? Object.values(properties) : [];
  return [...Object.keys(schema), ...[...inside, items ?? null].flatMap(wordsOf)];
}
