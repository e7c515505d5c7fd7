import type { Json, JsonObject } from "../../kernel/json.ts";
import type { Members } from "./member.ts";
import { untranslatable } from "./member.ts";

/** A member that both APIs write as a text, or as a list of parts; a text is one part of text. */
export function partsOf(owner: Members, name: string): readonly Members[] | string | undefined {
  const value = owner.take(name);
  if (value === undefined || typeof value === "string") return value;
  if (!Array.isArray(value)) throw owner.expected(name, "a string or a list");
  return owner.items(name);
}

/** The texts of a member that may hold nothing else; both APIs name a part of text alike. */
export function textsOf(owner: Members, name: string): readonly string[] {
  const parts = partsOf(owner, name);
  if (parts === undefined) return [];
  return typeof parts === "string" ? [parts] : parts.map(textOf);
}

function textOf(part: Members): string {
  if (part.requiredString("type") !== "text") throw untranslatable(part.at("type"), "expected `text`");
  const text = part.requiredString("text");
  part.end();
  return text;
}

/** Texts as either API writes them: one alone, or a list of parts. */
export function textContent(texts: readonly string[]): Json {
  return texts.length === 1 ? (texts[0] as string) : texts.map(textPart);
}

export function textPart(text: string): JsonObject {
  return { type: "text", text };
}
