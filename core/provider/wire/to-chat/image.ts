import type { JsonObject } from "../../../kernel/json.ts";
import { type Members, untranslatable } from "../member.ts";

/** A picture of a messages request, by its address or in itself, as a part of the chat API. */
export function imagePart(part: Members): JsonObject {
  const source = part.members("source");
  if (source === undefined) throw part.expected("source", "an object");
  const url = urlOf(source);
  source.end();
  part.end();
  return { type: "image_url", image_url: { url } };
}

function urlOf(source: Members): string {
  const type = source.requiredString("type");
  if (type === "url") return source.requiredString("url");
  if (type !== "base64") throw untranslatable(source.at("type"), `\`${type.slice(0, 64)}\``);
  return `data:${source.requiredString("media_type")};base64,${source.requiredString("data")}`;
}
