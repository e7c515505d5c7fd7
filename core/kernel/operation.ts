/** One step of an atomic batch on the store: all of its batch happen, or none. */
export type Operation =
  | { readonly type: "put"; readonly key: string; readonly value: string }
  | { readonly type: "del"; readonly key: string };
