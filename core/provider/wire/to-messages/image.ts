import type { JsonObject } from "../../../kernel/json.ts";
import { type Members, untranslatable } from "../member.ts";

const dataUrl = /^data:(image\/[a-z0-9.+-]{1,64});base64,/i;

/** A picture of a chat request, by its address or in itself, as a block of the messages API. */
export function imagePart(part: Members): JsonObject {
  const image = part.members("image_url");
  if (image === undefined) throw part.expected("image_url", "an object");
  const url = image.requiredString("url");
  image.neutral("detail", "auto");
  image.end();
  part.end();
  return { type: "image", source: sourceOf(url, image.at("url")) };
}

function sourceOf(url: string, path: string): JsonObject {
  if (/^https?:\/\//i.test(url)) return { type: "url", url };
  const head = dataUrl.exec(url);
  if (head === null) throw untranslatable(path, "expected an https address or base64 data of an image");
  return { type: "base64", media_type: (head[1] as string).toLowerCase(), data: url.slice(head[0].length) };
}
