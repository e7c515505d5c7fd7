import { isJsonObject, type JsonObject } from "../../action/json.ts";
import { indexAt, isText, objectAt, objectsAt, type TextSite } from "./stream-step.ts";

/** Maximum items of one response, and parts of one item. */
export const maxParts = 1_024;

/** Events of the responses API that add to a text or repeat it, with the member that they have it in. */
const textEvents: ReadonlyMap<
  string,
  { readonly key: string; readonly list?: "content" | "summary"; readonly part: string }
> = new Map([
  ["response.output_text.delta", { key: "delta", list: "content", part: "text" }],
  ["response.output_text.done", { key: "text", list: "content", part: "text" }],
  ["response.refusal.delta", { key: "delta", list: "content", part: "refusal" }],
  ["response.refusal.done", { key: "refusal", list: "content", part: "refusal" }],
  ["response.reasoning_text.delta", { key: "delta", list: "content", part: "text" }],
  ["response.reasoning_text.done", { key: "text", list: "content", part: "text" }],
  ["response.reasoning_summary_text.delta", { key: "delta", list: "summary", part: "text" }],
  ["response.reasoning_summary_text.done", { key: "text", list: "summary", part: "text" }],
  ["response.function_call_arguments.delta", { key: "delta", part: "arguments" }],
  ["response.function_call_arguments.done", { key: "arguments", part: "arguments" }],
  ["response.custom_tool_call_input.delta", { key: "delta", part: "input" }],
  ["response.custom_tool_call_input.done", { key: "input", part: "input" }],
  ["response.mcp_call_arguments.delta", { key: "delta", part: "arguments" }],
  ["response.mcp_call_arguments.done", { key: "arguments", part: "arguments" }],
  ["response.code_interpreter_call_code.delta", { key: "delta", part: "code" }],
  ["response.code_interpreter_call_code.done", { key: "code", part: "code" }],
]);

/** The texts of an item that are members of it, by its type. */
export const itemTexts: ReadonlyMap<string, readonly string[]> = new Map([
  ["function_call", ["arguments"]],
  ["custom_tool_call", ["input"]],
  ["mcp_call", ["arguments"]],
  ["code_interpreter_call", ["code"]],
]);

export interface ResponsesText extends TextSite {
  /** JSON Pointer into the response. */
  readonly pointer: string;
  readonly isDelta: boolean;
}

/** Lists the members of an event of the responses API that hold text of the response. */
export function responsesTexts(data: JsonObject): readonly ResponsesText[] {
  return sitesIn(data, String(data.type)).filter(({ holder, key }) => isText(holder[key]));
}

function sitesIn(data: JsonObject, type: string): readonly ResponsesText[] {
  const known = textEvents.get(type);
  if (known !== undefined) {
    return [{ holder: data, key: known.key, pointer: pointerOf(data, known), isDelta: known.key === "delta" }];
  }
  if (isResponseEvent(type)) {
    const output = objectsAt(objectAt(data.response, "response").output, "response.output");
    return output.flatMap((item, index) => itemSites(item, `/output/${index}`));
  }
  if (type.startsWith("response.output_item."))
    return itemSites(objectAt(data.item, "item"), `/output/${itemIndex(data)}`);
  const list = partLists.get(type.slice(0, type.lastIndexOf(".")));
  if (list === undefined) return [];
  const index = indexAt(data[`${list}_index`], `${list}_index`, maxParts);
  return [partSite(objectAt(data.part, "part"), `/output/${itemIndex(data)}/${list}/${index}`)];
}

const partLists: ReadonlyMap<string, "content" | "summary"> = new Map([
  ["response.content_part", "content"],
  // Some servers say so of the thinking that they show whole.
  ["response.reasoning_part", "content"],
  ["response.reasoning_summary_part", "summary"],
]);

function itemSites(item: JsonObject, pointer: string): readonly ResponsesText[] {
  const own = (itemTexts.get(String(item.type)) ?? []).map((key) => ({
    holder: item,
    key,
    pointer: `${pointer}/${key}`,
    isDelta: false,
  }));
  const lists = (["content", "summary"] as const).flatMap((list) =>
    Array.isArray(item[list])
      ? objectsAt(item[list], `item.${list}`).map((part, index) => partSite(part, `${pointer}/${list}/${index}`))
      : [],
  );
  return [...own, ...lists];
}

function partSite(part: JsonObject, pointer: string): ResponsesText {
  const key = textMember(part);
  return { holder: part, key, pointer: `${pointer}/${key}`, isDelta: false };
}

export function textMember({ type }: JsonObject): "text" | "refusal" {
  return type === "refusal" ? "refusal" : "text";
}

/** The member of an event that is read as a text, a part, an item or a response; undefined where it is none. */
export function memberRead(data: JsonObject, type: string): string | undefined {
  const text = textEvents.get(type)?.key;
  if (text !== undefined) return typeof data[text] === "string" ? text : undefined;
  const name = isResponseEvent(type) ? "response" : type.startsWith("response.output_item.") ? "item" : "part";
  return isJsonObject(data[name]) ? name : undefined;
}

function pointerOf(
  data: JsonObject,
  { list, part }: { readonly list?: "content" | "summary"; readonly part: string },
): string {
  const item = `/output/${itemIndex(data)}`;
  if (list === undefined) return `${item}/${part}`;
  return `${item}/${list}/${indexAt(data[`${list}_index`], `${list}_index`, maxParts)}/${part}`;
}

export function itemIndex(data: JsonObject): number {
  return indexAt(data.output_index, "output_index", maxParts);
}

/** True for events that carry the response itself. */
export function isResponseEvent(type: string): boolean {
  return /^response\.(?:created|queued|in_progress|completed|incomplete|failed)$/.test(type);
}

export function isItemEvent(type: string): boolean {
  return (
    textEvents.has(type) ||
    type.startsWith("response.output_item.") ||
    partLists.has(type.slice(0, type.lastIndexOf(".")))
  );
}

/** Returns the place of the text that an event adds to or repeats; undefined where it is another event. */
export function textPlace(data: JsonObject, type: string): TextPlace | undefined {
  const known = textEvents.get(type);
  if (known === undefined) return undefined;
  const pointer = pointerOf(data, known);
  return { owner: pointer.slice(0, pointer.lastIndexOf("/")), isOfPart: known.list !== undefined, part: known.part };
}

export interface TextPlace {
  /** JSON Pointer to the item or the part that holds the text. */
  readonly owner: string;
  readonly isOfPart: boolean;
  /** The member that holds it. */
  readonly part: string;
}
