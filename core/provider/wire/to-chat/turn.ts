import type { Json, JsonObject } from "../../../kernel/json.ts";
import { partsOf, textContent, textPart, textsOf } from "../content.ts";
import { type Members, untranslatable } from "../member.ts";
import { imagePart } from "./image.ts";
import { toolCall } from "./tool-call.ts";

/** One message of a messages request as those of a chat request: each result of a tool is a message of its own there. */
export function chatMessages(message: Members): readonly JsonObject[] {
  const role = message.requiredString("role");
  const translated = messagesOf(role, message);
  message.end();
  return translated;
}

function messagesOf(role: string, message: Members): readonly JsonObject[] {
  if (role === "user") return userMessages(message);
  if (role === "assistant") return [assistantMessage(message)];
  if (role === "system") return [{ role, content: textContent(textsOf(message, "content")) }];
  throw untranslatable(message.at("role"), `\`${role.slice(0, 64)}\``);
}

function userMessages(message: Members): readonly JsonObject[] {
  const parts = partsOf(message, "content");
  if (parts === undefined) throw message.expected("content", "a string or a list");
  if (typeof parts === "string") return [{ role: "user", content: parts }];
  const results: JsonObject[] = [];
  const said: JsonObject[] = [];
  for (const part of parts) {
    if (part.requiredString("type") !== "tool_result") said.push(userPart(part));
    else if (said.length > 0) throw untranslatable(part.path, "expected results of tools before all else");
    else results.push(toolMessage(part));
  }
  return said.length === 0 ? results : [...results, { role: "user", content: contentOf(said) }];
}

/** One part of text is written as a text, which is all that some servers of this API read. */
function contentOf(parts: readonly JsonObject[]): Json {
  const [first] = parts;
  return parts.length === 1 && first?.type === "text" ? (first.text as string) : parts;
}

function userPart(part: Members): JsonObject {
  const type = part.requiredString("type");
  if (type === "image") return imagePart(part);
  return textPart(blockText(part, type));
}

function blockText(part: Members, type: string): string {
  if (type !== "text") throw untranslatable(part.at("type"), `\`${type.slice(0, 64)}\``);
  const text = part.requiredString("text");
  part.neutral("citations");
  part.end();
  return text;
}

function toolMessage(result: Members): JsonObject {
  const id = result.requiredString("tool_use_id");
  const texts = textsOf(result, "content");
  result.neutral("is_error", false);
  result.end();
  return { role: "tool", tool_call_id: id, content: texts.length === 0 ? "" : textContent(texts) };
}

function assistantMessage(message: Members): JsonObject {
  const parts = partsOf(message, "content");
  if (parts === undefined) throw message.expected("content", "a string or a list");
  if (typeof parts === "string") return { role: "assistant", content: parts };
  const texts: string[] = [];
  const thoughts: string[] = [];
  const calls: JsonObject[] = [];
  for (const part of parts) {
    const type = part.requiredString("type");
    if (type === "tool_use") calls.push(toolCall(part));
    else if (calls.length > 0) throw untranslatable(part.path, "expected calls of tools after all else");
    else if (type === "thinking") thoughts.push(unsignedThought(part));
    else texts.push(blockText(part, type));
  }
  return {
    role: "assistant",
    content: texts.length === 0 ? null : textContent(texts),
    ...(thoughts.length === 0 ? {} : { reasoning_content: thoughts.join("") }),
    ...(calls.length === 0 ? {} : { tool_calls: calls }),
  };
}

/** What a model of the chat API thought. A signed thought is for the provider that signed it alone. */
function unsignedThought(part: Members): string {
  const thinking = part.requiredString("thinking");
  part.neutral("signature", "");
  part.end();
  return thinking;
}
