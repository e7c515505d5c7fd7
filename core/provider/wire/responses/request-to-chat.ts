import type { Json, JsonObject } from "../../../action/json.ts";
import { partsOf, textContent, textPart } from "../content.ts";
import { Members, untranslatable } from "../member.ts";

/** Members that ask a provider for what it keeps or does by itself, and what to send instead. */
const kept: Readonly<Record<string, string>> = {
  previous_response_id: "this provider keeps no responses: send the whole conversation in `input`",
  conversation: "this provider keeps no conversations: send the whole conversation in `input`",
  prompt: "this provider keeps no prompts: send `instructions` and `input`",
  context_management: "this provider does not shorten conversations: send a shorter `input`",
};

/** Parts of an answer that are asked for by name, and that a provider of another API has none of. */
const absentParts: ReadonlySet<Json> = new Set([
  "reasoning.encrypted_content",
  "file_search_call.results",
  "web_search_call.results",
  "web_search_call.action.sources",
  "message.input_image.image_url",
  "computer_call_output.output.image_url",
  "code_interpreter_call.outputs",
]);

/** Members that both APIs write alike, in requests of either. */
const shared = [
  "temperature",
  "top_p",
  "user",
  "safety_identifier",
  "prompt_cache_key",
  "prompt_cache_retention",
  "service_tier",
] as const;

/**
 * Translates a responses request to a chat request. Throws MODEL_UNTRANSLATABLE with the first member without an equivalent,
 * and with what to send instead where there is something.
 */
export function responsesToChatRequest(body: JsonObject): JsonObject {
  const request = new Members(body, "", "INVALID_REQUEST");
  for (const [name, instead] of Object.entries(kept)) {
    if (request.take(name) !== undefined) throw untranslatable(name, instead);
  }
  if (request.boolean("store") === true) {
    throw untranslatable("store", "this provider keeps no responses: send `store: false`, and the whole conversation");
  }
  const limit = request.number("max_output_tokens");
  const translated: Record<string, Json> = {
    model: request.requiredString("model"),
    messages: messagesOf(request),
    ...(limit === undefined ? {} : { max_completion_tokens: limit }),
    ...tools(request),
    ...thinking(request.members("reasoning")),
    ...textOptions(request.members("text")),
    ...sharedMembers(request),
  };
  const metadata = request.object("metadata") ?? {};
  if (Object.keys(metadata).length > 0) translated.metadata = metadata;
  streaming(request, translated);
  neutral(request);
  request.end();
  return translated;
}

/** Reads the members that both APIs write alike, and `more` of them. */
export function sharedMembers(request: Members, ...more: readonly string[]): JsonObject {
  const given = [...shared, ...more].map((name) => [name, request.take(name)] as const);
  return Object.fromEntries(given.flatMap(([name, value]) => (value === undefined ? [] : [[name, value] as const])));
}

/** Requests usage with every stream, because clients of the responses API always receive it. */
function streaming(request: Members, translated: Record<string, Json>): void {
  const stream = request.boolean("stream");
  if (stream !== undefined) translated.stream = stream;
  if (stream === true) translated.stream_options = { include_usage: true };
  const options = request.members("stream_options");
  options?.neutral("include_obfuscation", false);
  options?.end();
}

function neutral(request: Members): void {
  request.neutral("background", false);
  request.neutral("truncation", "disabled");
  request.neutral("top_logprobs", 0);
  for (const part of request.list("include") ?? []) {
    if (!absentParts.has(part)) throw untranslatable("include", `\`${String(part).slice(0, 64)}\``);
  }
}

/** A summary is not asked for: a provider of the chat API shows its thinking whole, or not at all. */
function thinking(reasoning: Members | undefined): JsonObject {
  if (reasoning === undefined) return {};
  const effort = reasoning.string("effort");
  reasoning.string("summary");
  reasoning.string("generate_summary");
  reasoning.neutral("context", "auto");
  reasoning.end();
  return effort === undefined ? {} : { reasoning_effort: effort };
}

function textOptions(text: Members | undefined): JsonObject {
  if (text === undefined) return {};
  const verbosity = text.string("verbosity");
  const format = text.members("format");
  text.end();
  return { ...(verbosity === undefined ? {} : { verbosity }), ...responseFormat(format) };
}

function responseFormat(format: Members | undefined): JsonObject {
  if (format === undefined) return {};
  const type = format.requiredString("type");
  const translated = type === "json_schema" ? { type, json_schema: schemaFormat(format) } : { type };
  if (!["text", "json_object", "json_schema"].includes(type)) throw unknownType(format, type);
  format.end();
  return type === "text" ? {} : { response_format: translated };
}

function schemaFormat(format: Members): JsonObject {
  const schema = format.object("schema");
  if (schema === undefined) throw format.expected("schema", "an object");
  const description = format.string("description");
  const strict = format.boolean("strict");
  return {
    name: format.requiredString("name"),
    ...(description === undefined ? {} : { description }),
    schema,
    ...(strict === undefined ? {} : { strict }),
  };
}

function tools(request: Members): JsonObject {
  const definitions = request.items("tools").map(toolDefinition);
  const choice = toolChoice(request);
  const parallel = request.boolean("parallel_tool_calls");
  if (definitions.length === 0) return choice === undefined ? {} : { tool_choice: choice };
  return {
    tools: definitions,
    ...(choice === undefined ? {} : { tool_choice: choice }),
    ...(parallel === undefined ? {} : { parallel_tool_calls: parallel }),
  };
}

function toolDefinition(tool: Members): JsonObject {
  const type = tool.requiredString("type");
  if (type !== "function") {
    throw untranslatable(tool.at("type"), `\`${type.slice(0, 64)}\`: send tools of type \`function\` to this provider`);
  }
  const description = tool.string("description");
  const parameters = tool.object("parameters");
  const strict = tool.boolean("strict");
  const definition = {
    name: tool.requiredString("name"),
    ...(description === undefined ? {} : { description }),
    ...(parameters === undefined ? {} : { parameters }),
    ...(strict === undefined ? {} : { strict }),
  };
  tool.neutral("defer_loading", false);
  tool.end();
  return { type: "function", function: definition };
}

function toolChoice(request: Members): Json | undefined {
  const choice = request.take("tool_choice");
  if (choice === undefined) return undefined;
  if (typeof choice === "string") {
    if (!["auto", "none", "required"].includes(choice)) throw untranslatable("tool_choice");
    return choice;
  }
  const named = request.members("tool_choice") as Members;
  const type = named.requiredString("type");
  if (type !== "function") throw unknownType(named, type);
  const name = named.requiredString("name");
  named.end();
  return { type: "function", function: { name } };
}

function messagesOf(request: Members): readonly JsonObject[] {
  const conversation = new ChatConversation();
  const instructions = request.string("instructions");
  if (instructions !== undefined) conversation.messages.push({ role: "system", content: instructions });
  const input = partsOf(request, "input");
  if (input === undefined) throw request.expected("input", "a string or a list");
  if (typeof input === "string") conversation.messages.push({ role: "user", content: input });
  else for (const item of input) conversation.add(item);
  return conversation.messages;
}

interface AssistantTurn extends JsonObject {
  readonly role: "assistant";
  readonly content: Json;
}

/**
 * Collects items as messages. The thoughts, texts and calls of the model between two others' items are one message, where
 * each kind keeps its order.
 */
class ChatConversation {
  readonly messages: JsonObject[] = [];
  #texts: string[] = [];
  #thoughts: string[] = [];
  #calls: JsonObject[] = [];
  /** The place of the model's message that is being collected. */
  #turn: number | undefined;

  add(item: Members): void {
    const type = item.string("type");
    if (type === undefined && item.take("role") === undefined) throw notKept(item);
    item.string("id");
    item.string("status");
    if (type === undefined || type === "message") this.#message(item);
    else if (type === "function_call") this.#call(item);
    else if (type === "function_call_output") this.#append(toolMessage(item));
    else if (type === "reasoning") this.#thought(item);
    else if (type === "item_reference") throw notKept(item);
    else throw unknownType(item, type);
    item.end();
  }

  #message(item: Members): void {
    const role = item.requiredString("role");
    item.string("phase");
    if (role === "assistant") this.#speak(() => this.#texts.push(...assistantTexts(item)));
    else if (role === "user") this.#append({ role, content: userContent(item) });
    else if (role === "system" || role === "developer") this.#append({ role, content: textContent(inputTexts(item)) });
    else throw untranslatable(item.at("role"), `\`${role.slice(0, 64)}\``);
  }

  #call(item: Members): void {
    const id = item.requiredString("call_id");
    const named = { name: item.requiredString("name"), arguments: item.requiredString("arguments") };
    directItem(item);
    this.#speak(() => this.#calls.push({ id, type: "function", function: named }));
  }

  #thought(item: Members): void {
    item.neutral("encrypted_content", "");
    const texts = [...thoughtsOf(item, "summary", "summary_text"), ...thoughtsOf(item, "content", "reasoning_text")];
    if (texts.length > 0) this.#speak(() => this.#thoughts.push(...texts));
  }

  #append(message: JsonObject): void {
    this.#turn = undefined;
    this.messages.push(message);
  }

  #speak(add: () => void): void {
    if (this.#turn === undefined) {
      this.#turn = this.messages.length;
      [this.#texts, this.#thoughts, this.#calls] = [[], [], []];
    }
    add();
    this.messages[this.#turn] = this.#spoken();
  }

  #spoken(): AssistantTurn {
    return {
      role: "assistant",
      content: this.#texts.length === 0 ? null : textContent(this.#texts),
      ...(this.#thoughts.length === 0 ? {} : { reasoning_content: this.#thoughts.join("\n\n") }),
      ...(this.#calls.length === 0 ? {} : { tool_calls: [...this.#calls] }),
    };
  }
}

function notKept(item: Members): Error {
  return untranslatable(
    item.path,
    "a reference to an item: this provider keeps none, so send the item itself, and `store: false`",
  );
}

/** Reads the `caller` of a call. Throws MODEL_UNTRANSLATABLE for a call by code that ran at the provider. */
export function directItem(item: Members): void {
  const caller = item.members("caller");
  if (caller !== undefined && caller.string("type") !== "direct") throw untranslatable(item.at("caller"));
}

/** Reads the texts of a reasoning item, of a request or a response. */
export function thoughtsOf(item: Members, name: "summary" | "content", type: string): readonly string[] {
  return item.items(name).map((part) => {
    const own = part.requiredString("type");
    if (own !== type) throw unknownType(part, own);
    const text = part.requiredString("text");
    part.end();
    return text;
  });
}

function unknownType(owner: Members, type: string): Error {
  return untranslatable(owner.at("type"), `\`${type.slice(0, 64)}\``);
}

function assistantTexts(item: Members): readonly string[] {
  const parts = contentOf(item, "content");
  return typeof parts === "string" ? [parts] : parts.map(assistantText);
}

/** A refusal in the history is what the model said. */
function assistantText(part: Members): string {
  const type = part.requiredString("type");
  if (type !== "output_text" && type !== "input_text" && type !== "refusal") throw unknownType(part, type);
  const text = part.requiredString(type === "refusal" ? "refusal" : "text");
  part.neutral("annotations");
  part.neutral("logprobs");
  part.end();
  return text;
}

function contentOf(item: Members, name: string): readonly Members[] | string {
  const parts = partsOf(item, name);
  if (parts === undefined) throw item.expected(name, "a string or a list");
  return parts;
}

function userContent(item: Members): Json {
  const parts = contentOf(item, "content");
  if (typeof parts === "string") return parts;
  const translated = parts.map(userPart);
  const [first] = translated;
  return translated.length === 1 && first?.type === "text" ? (first.text as string) : translated;
}

function userPart(part: Members): JsonObject {
  return part.string("type") === "input_image" ? imagePart(part) : textPart(inputText(part));
}

function inputText(part: Members): string {
  const type = part.requiredString("type");
  if (type !== "input_text") throw unknownType(part, type);
  const text = part.requiredString("text");
  part.end();
  return text;
}

function inputTexts(item: Members, name: string = "content"): readonly string[] {
  const parts = contentOf(item, name);
  return typeof parts === "string" ? [parts] : parts.map(inputText);
}

function imagePart(part: Members): JsonObject {
  const url = part.string("image_url");
  if (url === undefined) throw untranslatable(part.path, "this provider keeps no files: send `image_url`");
  const detail = part.string("detail");
  if (detail === "original") throw untranslatable(part.at("detail"), "`original`");
  part.end();
  return { type: "image_url", image_url: { url, ...(detail === undefined || detail === "auto" ? {} : { detail }) } };
}

function toolMessage(item: Members): JsonObject {
  const id = item.requiredString("call_id");
  const texts = inputTexts(item, "output");
  directItem(item);
  return { role: "tool", tool_call_id: id, content: texts.length === 0 ? "" : textContent(texts) };
}
