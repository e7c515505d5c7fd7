/** What is known before a rule runs about the value of an expression. `json` is any JSON value: its numbers are doubles. */
export type Kind = "bool" | "int" | "double" | "string" | "null" | "time" | "list" | "map" | "json" | "unknown";

export interface Shape {
  readonly kind: Kind;
  /** The only fields there are, where that is known. */
  readonly fields?: ReadonlyMap<string, Shape>;
  /** What the items of a list (or the names in a map) are. */
  readonly element?: Shape;
}

export const shapeOf: Readonly<Record<Kind, Shape>> = {
  bool: { kind: "bool" },
  int: { kind: "int" },
  double: { kind: "double" },
  string: { kind: "string" },
  null: { kind: "null" },
  time: { kind: "time" },
  list: { kind: "list" },
  map: { kind: "map" },
  json: { kind: "json" },
  unknown: { kind: "unknown" },
};

/** A map with these fields and no others. */
export function recordShape(fields: Readonly<Record<string, Shape>>): Shape {
  return { kind: "map", fields: new Map(Object.entries(fields)), element: shapeOf.string };
}
