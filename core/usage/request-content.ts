import { isJsonObject, type Json, type JsonObject } from "../action/json.ts";

/** What a model reads of a request in either API. */
export interface RequestContent {
  readonly texts: readonly string[];
  /** Tokens of what is no text. */
  readonly flat: number;
}

/** What providers take at most for one picture that they have made small enough. */
const imageTokens = 1_600;
/** Characters in base64 of a document or a recording that stand for a token. */
const base64PerToken = 32;
/** Around each message, and before the answer. */
const [messageTokens, answerTokens] = [4, 3];
const bytesPerToken = 4;

const images: ReadonlySet<unknown> = new Set(["image", "image_url", "input_image"]);
/** Members of messages that say how to read others. */
const silent: ReadonlySet<string> = new Set(
  "type role id tool_use_id tool_call_id cache_control signature media_type format".split(" "),
);

/** What `system`, `messages`, `tools` and `functions` say; pictures and documents at flat rates. */
export function contentOf(body: JsonObject): RequestContent {
  const content = new Content();
  const messages = Array.isArray(body.messages) ? body.messages.length : 0;
  content.flat += messages * messageTokens + answerTokens;
  content.read(body.system ?? []);
  content.read(body.messages ?? []);
  for (const told of [body.tools, body.functions]) if (told !== undefined) content.texts.push(JSON.stringify(told));
  return content;
}

/** One token for four bytes of text: what a request is let in with, at next to no cost. */
export function estimateTokens({ texts, flat }: RequestContent): number {
  const bytes = texts.reduce((sum, text) => sum + Buffer.byteLength(text), 0);
  return Math.ceil(bytes / bytesPerToken) + flat;
}

class Content implements RequestContent {
  readonly texts: string[] = [];
  flat = 0;

  /** Depth is the caller's promise: parsed input has been bounded. */
  read(value: Json): void {
    if (typeof value === "string") this.texts.push(value);
    else if (Array.isArray(value)) for (const item of value) this.read(item);
    else if (isJsonObject(value)) this.#readBlock(value);
  }

  #readBlock(block: JsonObject): void {
    if (images.has(block.type)) {
      this.flat += imageTokens;
      return;
    }
    for (const [name, member] of Object.entries(block)) {
      if (silent.has(name)) continue;
      if (name === "input") this.texts.push(JSON.stringify(member));
      else if ((name === "data" || name === "file_data") && typeof member === "string" && block.type !== "text") {
        this.flat += Math.ceil(member.length / base64PerToken);
      } else this.read(member);
    }
  }
}
