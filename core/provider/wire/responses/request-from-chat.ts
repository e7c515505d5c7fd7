import { sha256Hex } from "../../../action/canonical-json.ts";
import type { Json, JsonObject } from "../../../action/json.ts";
import { readStreaming, readTokenLimit, translateUserContent } from "../chat-request.ts";
import { textsOf } from "../content.ts";
import { Members, untranslatable } from "../member.ts";
import { reasoningItem, reasoningText } from "./answer.ts";
import { sharedMembers } from "./request-to-chat.ts";

/**
 * Translates a chat request to a responses request. The provider keeps nothing of it unless the client asks for that.
 * Throws MODEL_UNTRANSLATABLE with the first member without an equivalent.
 */
export function chatToResponsesRequest(body: JsonObject): JsonObject {
  const request = new Members(body, "", "INVALID_REQUEST");
  const limit = readTokenLimit(request);
  const effort = request.string("reasoning_effort");
  const translated = {
    model: request.requiredString("model"),
    input: request.items("messages").flatMap(itemsOf),
    ...(limit === undefined ? {} : { max_output_tokens: limit }),
    ...tools(request),
    ...(effort === undefined ? {} : { reasoning: { effort } }),
    ...textOptions(request),
    store: request.boolean("store") ?? false,
    ...sharedMembers(request, "metadata"),
    ...readStreaming(request),
  };
  neutral(request);
  request.end();
  return translated;
}

function neutral(request: Members): void {
  request.neutral("n", 1);
  request.neutral("stop");
  request.neutral("frequency_penalty", 0);
  request.neutral("presence_penalty", 0);
  request.neutral("logit_bias");
  request.neutral("logprobs", false);
  request.neutral("top_logprobs", 0);
}

function textOptions(request: Members): JsonObject {
  const verbosity = request.string("verbosity");
  const format = responseFormat(request.members("response_format"));
  if (verbosity === undefined && format === undefined) return {};
  return {
    text: { ...(format === undefined ? {} : { format }), ...(verbosity === undefined ? {} : { verbosity }) },
  };
}

function responseFormat(format: Members | undefined): JsonObject | undefined {
  if (format === undefined) return undefined;
  const type = format.requiredString("type");
  const schema = type === "json_schema" ? format.object("json_schema") : {};
  if (schema === undefined) throw format.expected("json_schema", "an object");
  format.end();
  return { ...schema, type };
}

function tools(request: Members): JsonObject {
  const definitions = request.items("tools").map(toolDefinition);
  const choice = toolChoice(request);
  const parallel = request.boolean("parallel_tool_calls");
  return {
    ...(definitions.length === 0 ? {} : { tools: definitions }),
    ...(choice === undefined ? {} : { tool_choice: choice }),
    ...(parallel === undefined ? {} : { parallel_tool_calls: parallel }),
  };
}

/** The APIs differ where `strict` is left out: not strict in one, strict in the other. */
function toolDefinition(tool: Members): JsonObject {
  const definition = functionOf(tool);
  const description = definition.string("description");
  const translated = {
    type: "function",
    name: definition.requiredString("name"),
    ...(description === undefined ? {} : { description }),
    parameters: definition.object("parameters") ?? { type: "object", properties: {} },
    strict: definition.boolean("strict") ?? false,
  };
  definition.end();
  return translated;
}

function functionOf(owner: Members): Members {
  if ((owner.string("type") ?? "function") !== "function")
    throw untranslatable(owner.at("type"), "expected `function`");
  const named = owner.members("function");
  if (named === undefined) throw owner.expected("function", "an object");
  return named;
}

function toolChoice(request: Members): Json | undefined {
  const choice = request.take("tool_choice");
  if (choice === undefined || typeof choice === "string") return choice;
  const named = request.members("tool_choice") as Members;
  const name = functionOf(named).requiredString("name");
  named.end();
  return { type: "function", name };
}

/** Translates one message to items: each call of a tool is an item of its own. */
function itemsOf(message: Members): readonly JsonObject[] {
  const items = translatedItems(message, message.requiredString("role"));
  message.end();
  return items;
}

function translatedItems(message: Members, role: string): readonly JsonObject[] {
  if (role === "user") return [{ role, content: translateUserContent(message, userParts) }];
  if (role === "assistant") return assistantItems(message);
  if (role === "tool") return [toolOutput(message)];
  if (role === "system" || role === "developer") return [{ role, content: inputContent(textsOf(message, "content")) }];
  throw untranslatable(message.at("role"), `\`${role.slice(0, 64)}\``);
}

function inputContent(texts: readonly string[]): Json {
  return texts.length === 1 ? (texts[0] as string) : texts.map(inputText);
}

const userParts = { text: inputText, image: imagePart };

function inputText(text: string): JsonObject {
  return { type: "input_text", text };
}

function imagePart(part: Members): JsonObject {
  const image = part.members("image_url");
  if (image === undefined) throw part.expected("image_url", "an object");
  const url = image.requiredString("url");
  const detail = image.string("detail") ?? "auto";
  image.end();
  part.end();
  return { type: "input_image", image_url: url, detail };
}

function assistantItems(message: Members): readonly JsonObject[] {
  const texts = textsOf(message, "content").filter((text) => text !== "");
  const thought = message.string("reasoning_content") ?? "";
  const calls = message.items("tool_calls").map(callItem);
  message.neutral("refusal");
  message.neutral("annotations");
  const content = texts.map((text) => ({ type: "output_text", text, annotations: [] }));
  return [
    ...(thought === "" ? [] : [reasoningItem(`rs_${sha256Hex(thought).slice(0, 24)}`, [reasoningText(thought)])]),
    ...(content.length === 0 ? [] : [{ type: "message", role: "assistant", content }]),
    ...calls,
  ];
}

function callItem(call: Members): JsonObject {
  const callId = call.requiredString("id");
  const named = functionOf(call);
  call.end();
  const item = {
    type: "function_call",
    call_id: callId,
    name: named.requiredString("name"),
    arguments: named.string("arguments") || "{}",
  };
  named.end();
  return item;
}

function toolOutput(message: Members): JsonObject {
  const id = message.requiredString("tool_call_id");
  const texts = textsOf(message, "content");
  return { type: "function_call_output", call_id: id, output: texts.length === 0 ? "" : inputContent(texts) };
}
