import { isJsonObject, type Json, type JsonObject } from "../../kernel/json.ts";

/**
 * A request without these hints: at its top, in its messages and their blocks, in its system prompt and its tools. What
 * tools are given and what they say stays as it is.
 */
export function leaveOut(body: JsonObject, names: ReadonlySet<string>): JsonObject {
  if (names.size === 0) return body;
  const without = ([name]: readonly [string, Json]): boolean => !names.has(name);
  const strip = (value: JsonObject): JsonObject => Object.fromEntries(Object.entries(value).filter(without));
  const inItems = (value: Json, change: (item: JsonObject) => JsonObject): Json =>
    Array.isArray(value) ? value.map((item: Json) => (isJsonObject(item) ? change(item) : item)) : value;
  const block = (value: JsonObject): JsonObject =>
    inMember(strip(value), "content", (content) => inItems(content, strip));
  const message = (value: JsonObject): JsonObject =>
    inMember(strip(value), "content", (content) => inItems(content, block));
  return ["system", "tools"].reduce(
    (left, name) => inMember(left, name, (value) => inItems(value, strip)),
    inMember(strip(body), "messages", (value) => inItems(value, message)),
  );
}

function inMember(value: JsonObject, name: string, change: (member: Json) => Json): JsonObject {
  const member = value[name];
  return member === undefined ? value : { ...value, [name]: change(member) };
}
