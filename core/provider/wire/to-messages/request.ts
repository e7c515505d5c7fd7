import type { Json, JsonObject } from "../../../action/json.ts";
import { readStreaming, readTokenLimit, translateUserContent } from "../chat-request.ts";
import { textContent, textPart, textsOf } from "../content.ts";
import { Members, untranslatable } from "../member.ts";
import { toolUse } from "./response.ts";

/** The token limit where a chat request sets none; the messages API requires one. */
export const defaultMaxTokens = 4_096;

/** Translates a chat request to a messages request. Throws MODEL_UNTRANSLATABLE with the first member without an equivalent. */
export function toMessagesRequest(body: JsonObject): JsonObject {
  const request = new Members(body, "", "INVALID_REQUEST");
  const { system, messages } = turnsOf(request.items("messages"));
  const translated: Record<string, Json> = {
    model: request.requiredString("model"),
    max_tokens: readTokenLimit(request) ?? defaultMaxTokens,
    ...(system.length === 0 ? {} : { system: textContent(system) }),
    messages,
    ...sampling(request),
    ...tools(request),
  };
  const user = request.string("user");
  if (user !== undefined) translated.metadata = { user_id: user };
  Object.assign(translated, readStreaming(request));
  neutral(request);
  request.end();
  return translated;
}

function sampling(request: Members): JsonObject {
  const temperature = request.number("temperature");
  if (temperature !== undefined && temperature > 1) throw untranslatable("temperature", "expected at most 1");
  const topP = request.number("top_p");
  const stop = stopSequences(request);
  return {
    ...(temperature === undefined ? {} : { temperature }),
    ...(topP === undefined ? {} : { top_p: topP }),
    ...(stop === undefined ? {} : { stop_sequences: stop }),
  };
}

function stopSequences(request: Members): readonly Json[] | undefined {
  const stop = request.take("stop");
  return typeof stop === "string" ? [stop] : request.list("stop");
}

function tools(request: Members): JsonObject {
  const definitions = request.items("tools").map(toolDefinition);
  const parallel = request.boolean("parallel_tool_calls") ?? true;
  const choice = toolChoice(request, parallel, definitions.length > 0);
  return {
    ...(definitions.length === 0 ? {} : { tools: definitions }),
    ...(choice === undefined ? {} : { tool_choice: choice }),
  };
}

function neutral(request: Members): void {
  request.neutral("n", 1);
  request.neutral("frequency_penalty", 0);
  request.neutral("presence_penalty", 0);
  request.neutral("logit_bias");
  request.neutral("logprobs", false);
  request.neutral("top_logprobs", 0);
  request.neutral("store", false);
  request.neutral("metadata");
  request.neutral("service_tier", "auto");
  const format = request.members("response_format");
  if (format !== undefined && format.string("type") !== "text") throw untranslatable("response_format");
  format?.end();
}

interface Turns {
  /** The instructions before the first message. */
  readonly system: readonly string[];
  readonly messages: readonly JsonObject[];
}

/** Translates chat messages: leading instructions become the system prompt, tool results part of the user's turn. */
function turnsOf(chat: readonly Members[]): Turns {
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
  /** True if the turn holds only tool results so far, so that the user's next message is merged into it. */
  readonly results: boolean;
}

function turnOf(role: string, message: Members): Turn {
  if (role === "user") return { role, content: translateUserContent(message, userParts), results: false };
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

const userParts = { text: textPart, image: imagePart };

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

const dataUrl = /^data:(image\/[a-z0-9.+-]{1,64});base64,/i;

/** Translates an image, by address or inline, to a block of the messages API. */
function imagePart(part: Members): JsonObject {
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

/** Translates a function to a tool of the messages API. */
function toolDefinition(tool: Members): JsonObject {
  const definition = functionOf(tool);
  const description = definition.string("description");
  const strict = definition.boolean("strict");
  const translated = {
    name: definition.requiredString("name"),
    ...(description === undefined ? {} : { description }),
    input_schema: definition.object("parameters") ?? { type: "object", properties: {} },
    ...(strict === undefined ? {} : { strict }),
  };
  definition.end();
  return translated;
}

/** Reads the `function` of a tool or a choice, the only type that both APIs support. */
function functionOf(owner: Members): Members {
  if (owner.requiredString("type") !== "function") throw untranslatable(owner.at("type"), "expected `function`");
  const named = owner.members("function");
  if (named === undefined) throw owner.expected("function", "an object");
  owner.end();
  return named;
}

const modes: ReadonlyMap<string, string> = new Map([
  ["auto", "auto"],
  ["required", "any"],
  ["none", "none"],
]);

/** Translates `tool_choice` and `parallel_tool_calls`; undefined where the request has neither. */
function toolChoice(request: Members, parallel: boolean, offered: boolean): JsonObject | undefined {
  const choice = choiceOf(request);
  if (parallel) return choice;
  if (!offered) throw untranslatable("parallel_tool_calls", "expected `tools`");
  if (choice?.type === "none") return choice;
  return { ...(choice ?? { type: "auto" }), disable_parallel_tool_use: true };
}

function choiceOf(request: Members): JsonObject | undefined {
  const choice = request.take("tool_choice");
  if (choice === undefined) return undefined;
  if (typeof choice === "string") {
    const type = modes.get(choice);
    if (type === undefined) throw untranslatable("tool_choice");
    return { type };
  }
  const named = request.members("tool_choice");
  if (named === undefined) return undefined;
  const definition = functionOf(named);
  const name = definition.requiredString("name");
  definition.end();
  return { type: "tool", name };
}
