import type { Json, JsonObject } from "../../../action/json.ts";
import { partsOf, textContent, textPart, textsOf } from "../content.ts";
import { Members, untranslatable } from "../member.ts";
import { toolUse } from "./response.ts";

/** What an answer may take where a chat request sets no limit: the messages API wants one. */
export const defaultMaxTokens = 4_096;

/** A chat request as a messages request; MODEL_UNTRANSLATABLE names the first member that has no equivalent. */
export function toMessagesRequest(body: JsonObject): JsonObject {
  const request = new Members(body, "", "INVALID_REQUEST");
  const { system, messages } = turnsOf(request.items("messages"));
  const translated: Record<string, Json> = {
    model: request.requiredString("model"),
    max_tokens: maxTokens(request),
    ...(system.length === 0 ? {} : { system: textContent(system) }),
    messages,
    ...sampling(request),
    ...tools(request),
  };
  const user = request.string("user");
  if (user !== undefined) translated.metadata = { user_id: user };
  streaming(request, translated);
  neutral(request);
  request.end();
  return translated;
}

function maxTokens(request: Members): number {
  const former = request.number("max_tokens");
  const limit = request.number("max_completion_tokens") ?? former;
  if (former !== undefined && former !== limit) throw untranslatable("max_tokens", "`max_completion_tokens` differs");
  return limit ?? defaultMaxTokens;
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

/** The messages API always counts what it streams; whether a client of the chat API is told is up to the answer. */
function streaming(request: Members, translated: Record<string, Json>): void {
  const stream = request.boolean("stream");
  if (stream !== undefined) translated.stream = stream;
  const options = request.members("stream_options");
  options?.boolean("include_usage");
  options?.neutral("include_obfuscation", false);
  options?.end();
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
  /** What stands before the first message. */
  readonly system: readonly string[];
  readonly messages: readonly JsonObject[];
}

/** The messages of a chat request: instructions that lead them apart, results of tools inside the turn of the user. */
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

const dataUrl = /^data:(image\/[a-z0-9.+-]{1,64});base64,/i;

/** A picture of a chat request, by its address or in itself, as a block of the messages API. */
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

/** A function that a chat request offers, as a tool of the messages API. */
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

/** The `function` of a tool or of a choice: the only type of either that both APIs know. */
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

/** Which tool is to be called, and whether more than one may be at once; undefined where the request leaves both open. */
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
