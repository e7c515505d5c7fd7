import type { Json, JsonObject } from "../../../action/json.ts";
import { partsOf, textContent, textPart, textsOf } from "../content.ts";
import { Members, untranslatable } from "../member.ts";
import { toolCall } from "./response.ts";

/** Maximum stop sequences of a chat request. */
const maxStops = 4;

/** Translates a messages request to a chat request. Throws MODEL_UNTRANSLATABLE with the first member without an equivalent. */
export function toChatRequest(body: JsonObject): JsonObject {
  const request = new Members(body, "", "INVALID_REQUEST");
  const system = textsOf(request, "system");
  const messages = request.items("messages").flatMap(chatMessages);
  const limit = request.number("max_tokens");
  if (limit === undefined) throw request.expected("max_tokens", "a number");
  const translated: Record<string, Json> = {
    model: request.requiredString("model"),
    max_completion_tokens: limit,
    messages: system.length === 0 ? messages : [{ role: "system", content: textContent(system) }, ...messages],
    ...sampling(request),
    ...tools(request),
  };
  const user = userOf(request);
  if (user !== undefined) translated.user = user;
  streaming(request, translated);
  neutral(request);
  request.end();
  return translated;
}

function sampling(request: Members): JsonObject {
  const temperature = request.number("temperature");
  const topP = request.number("top_p");
  const stop = request.list("stop_sequences");
  if (stop !== undefined && stop.length > maxStops) {
    throw untranslatable("stop_sequences", `expected at most ${maxStops}, got ${stop.length}`);
  }
  return {
    ...(temperature === undefined ? {} : { temperature }),
    ...(topP === undefined ? {} : { top_p: topP }),
    ...(stop === undefined || stop.length === 0 ? {} : { stop }),
  };
}

function tools(request: Members): JsonObject {
  const definitions = request.items("tools").map(toolDefinition);
  return {
    ...(definitions.length === 0 ? {} : { tools: definitions }),
    ...toolChoice(request.members("tool_choice")),
  };
}

function userOf(request: Members): string | undefined {
  const metadata = request.members("metadata");
  const user = metadata?.string("user_id");
  metadata?.end();
  return user;
}

/** Requests usage with every stream, because messages clients always receive it. */
function streaming(request: Members, translated: Record<string, Json>): void {
  const stream = request.boolean("stream");
  if (stream !== undefined) translated.stream = stream;
  if (stream === true) translated.stream_options = { include_usage: true };
}

function neutral(request: Members): void {
  request.neutral("service_tier", "auto");
  request.neutral("output_config");
  const thinking = request.members("thinking");
  if (thinking !== undefined && thinking.string("type") !== "disabled") throw untranslatable("thinking");
  thinking?.end();
}

/** Translates one message to those of a chat request, where each tool result is a message of its own. */
function chatMessages(message: Members): readonly JsonObject[] {
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
  const others: JsonObject[] = [];
  for (const part of parts) {
    if (part.requiredString("type") !== "tool_result") others.push(userPart(part));
    else if (others.length > 0) throw untranslatable(part.path, "expected results of tools before all else");
    else results.push(toolMessage(part));
  }
  return others.length === 0 ? results : [...results, { role: "user", content: contentOf(others) }];
}

/** Writes a single part of text as a plain text, the only form that some servers of this API accept. */
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

/** The thinking of a model of the chat API. Signed thinking is only accepted by the provider that signed it. */
function unsignedThought(part: Members): string {
  const thinking = part.requiredString("thinking");
  part.neutral("signature", "");
  part.end();
  return thinking;
}

/** Translates an image, by address or inline, to a part of the chat API. */
function imagePart(part: Members): JsonObject {
  const source = part.members("source");
  if (source === undefined) throw part.expected("source", "an object");
  const url = urlOf(source);
  source.end();
  part.end();
  return { type: "image_url", image_url: { url } };
}

function urlOf(source: Members): string {
  const type = source.requiredString("type");
  if (type === "url") return source.requiredString("url");
  if (type !== "base64") throw untranslatable(source.at("type"), `\`${type.slice(0, 64)}\``);
  return `data:${source.requiredString("media_type")};base64,${source.requiredString("data")}`;
}

/** Translates a tool to a function of the chat API. Throws MODEL_UNTRANSLATABLE for tools that a provider runs itself. */
function toolDefinition(tool: Members): JsonObject {
  tool.neutral("type", "custom");
  const description = tool.string("description");
  const parameters = tool.object("input_schema");
  if (parameters === undefined) throw tool.expected("input_schema", "an object");
  const strict = tool.boolean("strict");
  const definition = {
    name: tool.requiredString("name"),
    ...(description === undefined ? {} : { description }),
    parameters,
    ...(strict === undefined ? {} : { strict }),
  };
  tool.end();
  return { type: "function", function: definition };
}

const modes: ReadonlyMap<string, string> = new Map([
  ["auto", "auto"],
  ["any", "required"],
  ["none", "none"],
]);

/** Translates the tool choice to `tool_choice` and `parallel_tool_calls` of a chat request. */
function toolChoice(choice: Members | undefined): JsonObject {
  if (choice === undefined) return {};
  const type = choice.requiredString("type");
  const serial = choice.boolean("disable_parallel_tool_use") === true;
  const named = type === "tool" ? { type: "function", function: { name: choice.requiredString("name") } } : undefined;
  const translated = named ?? modes.get(type);
  if (translated === undefined) throw untranslatable(choice.at("type"), `\`${type.slice(0, 64)}\``);
  choice.end();
  return { tool_choice: translated, ...(serial ? { parallel_tool_calls: false } : {}) };
}
