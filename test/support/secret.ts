import type { Json } from "../../core/action/json.ts";
import type { Redaction } from "../../core/action/policy.ts";

/** A text that tests look for and redact. */
export const secret = "AKIA1234567890ABCDEF";

/** Redacts the secret wherever it stands whole in a text of a value, as a policy would. */
export function findSecret(value: Json | undefined, pointer: string): readonly Redaction[] {
  if (typeof value === "object" && value !== null) {
    return Object.entries(value).flatMap(([name, member]) => findSecret(member as Json, `${pointer}/${name}`));
  }
  if (typeof value !== "string") return [];
  const found: Redaction[] = [];
  for (let at = value.indexOf(secret); at !== -1; at = value.indexOf(secret, at + 1)) {
    const start = Buffer.byteLength(value.slice(0, at));
    found.push({ rule: "x.secret", pointer, start, end: start + secret.length, replacement: "[key]" });
  }
  return found;
}
