import type { Json, JsonObject } from "../../../kernel/json.ts";
import { partsOf, textContent, textPart, textsOf } from "../content.ts";
import { type Members, untranslatable } from "../member.ts";
import { imagePart } from "./image.ts";
import { toolUse } from "./tool-use.ts";

export interface Turns {
  /** What stands before the first message. */
  readonly system: readonly string[];
  readonly messages: readonly JsonObject[];
}

/** The messages of a chat request: instructions that lead them apart, results of tools inside the turn of the user. */
export function turnsOf(chat: readonly Members[]): Turns {
  const system: string[] = [];
  const turns: Turn[] = [];
  for (const message of chat) {
    const role = message.requiredString("role");
    if (role === "system" || role === "developer") {
      if (turns.length > 0) throw untranslatable(message.at("role"), `expected \`${role}\` before all other messages`);
      system.push(...textsOf(message, "content"));
    } else append(turns, turnOf(role, message));
    message.end();
  }
  return { system, messages: turns.map(({ role, content }) => ({ role, content })) };
}

interface Turn {
  readonly role: string;
  readonly content: Json;
  /** Whether only results of tools are in it so far: what follows of the user's belongs into the same turn. */
  readonly results: boolean;
}

function turnOf(role: string, message: Members): Turn {
  if (role === "user") return { role, content: userContent(message), results: false };
  if (role === "assistant") return { role, content: assistantContent(message), results: false };
  if (role === "tool") return { role: "user", content: [toolResult(message)], results: true };
  throw untranslatable(message.at("role"), `\`${role.slice(0, 64)}\``);
}

function append(turns: Turn[], turn: Turn): void {
  const last = turns.at(-1);
  if (last?.results !== true || turn.role !== "user") turns.push(turn);
  else turns[turns.length - 1] = { ...turn, content: [...blocksOf(last.content), ...blocksOf(turn.content)] };
}

function blocksOf(content: Json): readonly Json[] {
  return typeof content === "string" ? [textPart(content)] : (content as readonly Json[]);
}

function userContent(message: Members): Json {
  const parts = partsOf(message, "content");
  if (parts === undefined) throw message.expected("content", "a string or a list");
  return typeof parts === "string" ? parts : parts.map(userPart);
}

function userPart(part: Members): JsonObject {
  const type = part.requiredString("type");
  if (type === "image_url") return imagePart(part);
  if (type !== "text") throw untranslatable(part.at("type"), `\`${type.slice(0, 64)}\``);
  const text = part.requiredString("text");
  part.end();
  return textPart(text);
}

function assistantContent(message: Members): Json {
  const texts = textsOf(message, "content").filter((text) => text !== "");
  const thinking = message.string("reasoning_content");
  const calls = message.items("tool_calls").map(toolUse);
  message.neutral("refusal");
  message.neutral("annotations");
  if (calls.length === 0 && thinking === undefined) return textContent(texts);
  const thought = thinking === undefined ? [] : [{ type: "thinking", thinking, signature: "" }];
  return [...thought, ...texts.map(textPart), ...calls];
}

function toolResult(message: Members): JsonObject {
  const id = message.requiredString("tool_call_id");
  return { type: "tool_result", tool_use_id: id, content: textContent(textsOf(message, "content")) };
}
