import { isJsonObject, type Json, type JsonObject } from "../action/json.ts";

/** The part of a request that a model reads, in any API. */
export interface RequestContent {
  readonly texts: readonly string[];
  /** Tokens of everything but text, at flat rates. */
  readonly flatTokens: number;
}

/** Tokens that providers charge at most for one image, after scaling it down. */
const imageTokens = 1_600;
/** Base64 characters of a document or a recording per token. */
const base64PerToken = 32;
/** Tokens around each message, and before the response. */
const [messageTokens, responseTokens] = [4, 3];
const bytesPerToken = 4;

const imageTypes: ReadonlySet<unknown> = new Set(["image", "image_url", "input_image"]);
/** Members of messages that describe others and are not read by the model. */
const metadataNames: ReadonlySet<string> = new Set(
  "type role id call_id status tool_use_id tool_call_id cache_control signature media_type format".split(" "),
);

/**
 * Collects the texts of `system` or `instructions`, of `messages` or `input`, of `tools` and `functions`; images and
 * documents count at flat rates.
 */
export function contentOf(body: JsonObject): RequestContent {
  const content = new ContentReader();
  const messages = body.messages ?? body.input ?? [];
  content.flatTokens +=
    (Array.isArray(messages) ? messages.filter(isJsonObject).length : 1) * messageTokens + responseTokens;
  for (const part of [body.system, body.instructions, messages]) content.read(part ?? []);
  content.flatTokens += tokensIn(body.input);
  for (const list of [body.tools, body.functions]) if (list !== undefined) content.texts.push(JSON.stringify(list));
  return content;
}

/** Texts to embed may come as the numbers of their tokens. */
function tokensIn(input: Json | undefined): number {
  const lists = Array.isArray(input) ? [input, ...input.filter(Array.isArray)] : [];
  return lists.reduce((sum, list) => sum + list.filter((token) => typeof token === "number").length, 0);
}

/** Estimates one token for four bytes of text: cheap enough for every request. */
export function estimateTokens({ texts, flatTokens }: RequestContent): number {
  const bytes = texts.reduce((sum, text) => sum + Buffer.byteLength(text), 0);
  return Math.ceil(bytes / bytesPerToken) + flatTokens;
}

class ContentReader implements RequestContent {
  readonly texts: string[] = [];
  flatTokens = 0;

  /** Recursive: the depth of parsed input is bounded. */
  read(value: Json): void {
    if (typeof value === "string") this.texts.push(value);
    else if (Array.isArray(value)) for (const item of value) this.read(item);
    else if (isJsonObject(value)) this.#readBlock(value);
  }

  #readBlock(block: JsonObject): void {
    if (imageTypes.has(block.type)) {
      this.flatTokens += imageTokens;
      return;
    }
    for (const [name, member] of Object.entries(block)) {
      if (metadataNames.has(name)) continue;
      if (name === "input") this.texts.push(JSON.stringify(member));
      else if ((name === "data" || name === "file_data") && typeof member === "string" && block.type !== "text") {
        this.flatTokens += Math.ceil(member.length / base64PerToken);
      } else this.read(member);
    }
  }
}
