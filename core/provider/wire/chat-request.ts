import type { Json, JsonObject } from "../../action/json.ts";
import { partsOf } from "./content.ts";
import { type Members, untranslatable } from "./member.ts";

/** Reads the token limit of a chat request under either of its names. Throws MODEL_UNTRANSLATABLE where they differ. */
export function readTokenLimit(request: Members): number | undefined {
  const former = request.number("max_tokens");
  const limit = request.number("max_completion_tokens") ?? former;
  if (former !== undefined && former !== limit) throw untranslatable("max_tokens", "`max_completion_tokens` differs");
  return limit;
}

/** Reads `stream`. Drops `include_usage`: the other APIs always report usage, and the translated response adds or omits it. */
export function readStreaming(request: Members): { readonly stream?: boolean } {
  const stream = request.boolean("stream");
  const options = request.members("stream_options");
  options?.boolean("include_usage");
  options?.neutral("include_obfuscation", false);
  options?.end();
  return stream === undefined ? {} : { stream };
}

/** Writes the parts of a user's message in another API; `image` reads the part to its end. */
interface PartWriter {
  text(text: string): JsonObject;
  image(part: Members): JsonObject;
}

/** Translates what a user says: a text as it is, or each of its parts. */
export function translateUserContent(message: Members, writer: PartWriter): Json {
  const parts = partsOf(message, "content");
  if (parts === undefined) throw message.expected("content", "a string or a list");
  return typeof parts === "string" ? parts : parts.map((part) => translatePart(part, writer));
}

function translatePart(part: Members, writer: PartWriter): JsonObject {
  const type = part.requiredString("type");
  if (type === "image_url") return writer.image(part);
  if (type !== "text") throw untranslatable(part.at("type"), `\`${type.slice(0, 64)}\``);
  const text = part.requiredString("text");
  part.end();
  return writer.text(text);
}
