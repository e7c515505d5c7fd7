import type { JsonObject } from "../../kernel/json.ts";
import { isText, objectAt, type TextSite } from "./stream-shape.ts";

/** The text of each kind of delta, and the member of its block that it adds to. */
export const deltaTexts: ReadonlyMap<string, { readonly key: string; readonly part: string }> = new Map([
  ["text_delta", { key: "text", part: "text" }],
  ["input_json_delta", { key: "partial_json", part: "input" }],
  ["thinking_delta", { key: "thinking", part: "thinking" }],
  ["signature_delta", { key: "signature", part: "signature" }],
]);

/** The members of a block that are its text from the start, by the block's type. */
export const blockTexts: ReadonlyMap<string, readonly string[]> = new Map([
  ["text", ["text"]],
  ["thinking", ["thinking", "signature"]],
]);

export interface MessagesTextSite extends TextSite {
  /** The member of the block. */
  readonly part: string;
}

/** Where the texts of an event of the messages API are: in what begins a block, and in what adds to it. */
export function messagesTextSites(data: JsonObject): readonly MessagesTextSite[] {
  return sitesOf(data).filter(({ holder, key }) => isText(holder[key]));
}

function sitesOf(data: JsonObject): readonly MessagesTextSite[] {
  if (data.type === "content_block_start") {
    const block = objectAt(data.content_block, "content_block");
    return (blockTexts.get(String(block.type)) ?? []).map((key) => ({ holder: block, key, part: key }));
  }
  if (data.type !== "content_block_delta") return [];
  const delta = objectAt(data.delta, "delta");
  const text = deltaTexts.get(String(delta.type));
  return text === undefined ? [] : [{ holder: delta, ...text }];
}
