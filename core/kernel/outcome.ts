import type { Json } from "./json.ts";

/**
 * What the upstream answered.
 * `unknown`: the action was sent, and no answer can be vouched for (timeout, lost connection, crash).
 */
export type Outcome =
  | { readonly status: "success" | "error"; readonly output: Json }
  | { readonly status: "unknown"; readonly reason: string };
