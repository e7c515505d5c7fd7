import type { Json } from "./json.ts";

/** A text that a gateway wrote, or should have; null where it is no JSON. */
export function parseKept(text: string): Json {
  try {
    return JSON.parse(text) as Json;
  } catch {
    return null;
  }
}
