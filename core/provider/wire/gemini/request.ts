import { GatewayError } from "../../../action/error.ts";
import { isJsonObject, type Json, type JsonObject } from "../../../action/json.ts";
import { textContent, textPart } from "../content.ts";
import { Members, untranslatable } from "../member.ts";
import { CallPairing } from "./call-pairing.ts";
import { jsonSchema } from "./schema.ts";

/** A request of the Gemini API as the chat request that is judged and served. */
export interface GeminiRequest {
  readonly chat: JsonObject;
  /** True if the client reads the model's thinking. */
  readonly showsThoughts: boolean;
  /** The hints that were dropped, by their paths. */
  readonly droppedHints: readonly string[];
}

/**
 * Translates a Gemini request to a chat request. `model` and `stream` come from its path. Hints are dropped; throws
 * MODEL_UNTRANSLATABLE with the first other member without an equivalent, and INVALID_REQUEST.
 */
export function readGeminiRequest(body: Json, model: string, stream: boolean): GeminiRequest {
  const request = new Members(inCamelCase(body), "", "INVALID_REQUEST");
  const config = request.members("generationConfig");
  const chat = {
    model,
    messages: [...instructions(request), ...messages(request)],
    ...(config === undefined ? {} : generation(config)),
    ...tools(request),
    ...(stream ? { stream, stream_options: { include_usage: true } } : {}),
  };
  const droppedHints = dropHints(request, config);
  request.end();
  const showsThoughts = config?.members("thinkingConfig")?.boolean("includeThoughts") === true;
  return { chat, showsThoughts, droppedHints };
}

/** Members about how to sample, how long to think and what to rate; clients send some with every request. */
const hints = ["topK", "thinkingConfig"] as const;

function dropHints(request: Members, config: Members | undefined): readonly string[] {
  const given = hints.filter((name) => config?.take(name) !== undefined).map((name) => `generationConfig.${name}`);
  return request.take("safetySettings") === undefined ? given : [...given, "safetySettings"];
}

/** Returns the tools of a Gemini request that a provider would run, each as a tool with its name as the only member. */
export function providerTools(body: Json): readonly JsonObject[] {
  const tools = isJsonObject(body) && Array.isArray(body.tools) ? (body.tools as readonly Json[]) : [];
  return tools.filter(isJsonObject).flatMap((tool) =>
    Object.entries(tool)
      .filter(([name]) => camelCase(name) !== "functionDeclarations")
      .map(([name, value]) => ({ [name]: value })),
  );
}

/** Members whose names are not the API's: arguments, results and schemas. */
const foreignMembers: ReadonlySet<string> = new Set([
  "args",
  "parameters",
  "parametersJsonSchema",
  "response",
  "responseJsonSchema",
  "responseSchema",
]);

/** Renames members to camel case: the API reads both spellings. Throws INVALID_REQUEST for a member in two of them. */
function inCamelCase(value: Json): Json {
  if (Array.isArray(value)) return value.map(inCamelCase);
  if (!isJsonObject(value)) return value;
  const names = new Set<string>();
  const members = Object.entries(value).map(([given, member]): readonly [string, Json] => {
    const name = camelCase(given);
    if (names.has(name)) {
      throw new GatewayError("INVALID_REQUEST", `expected \`${name.slice(0, 64)}\` once, got it in two spellings`);
    }
    names.add(name);
    return [name, foreignMembers.has(name) ? member : inCamelCase(member)];
  });
  return Object.fromEntries(members);
}

function camelCase(name: string): string {
  return name.replace(/(?<=[a-z0-9])_([a-z])/g, (_, letter: string) => letter.toUpperCase());
}

function instructions(request: Members): readonly JsonObject[] {
  const content = request.members("systemInstruction");
  if (content === undefined) return [];
  content.string("role"); // read by no model
  const texts = content.items("parts").map(textOf);
  content.end();
  return texts.length === 0 ? [] : [{ role: "system", content: textContent(texts) }];
}

/** Translates the turns. Turns of the model that follow each other are one, as clients keep each piece of a stream. */
function messages(request: Members): readonly JsonObject[] {
  const translated: JsonObject[] = [];
  const pairing = new CallPairing();
  let ofModel: Members[] = [];
  const endTurn = (): void => {
    if (ofModel.length > 0) translated.push(modelMessage(ofModel, pairing));
    ofModel = [];
  };
  for (const content of request.items("contents")) {
    const role = content.string("role") ?? "user";
    const parts = content.items("parts");
    if (parts.length === 0) throw content.expected("parts", "a list that is not empty");
    content.end();
    if (role === "model") ofModel.push(...parts);
    else if (role !== "user" && role !== "function")
      throw untranslatable(content.at("role"), `\`${role.slice(0, 64)}\``);
    else {
      endTurn();
      translated.push(...userMessages(parts, pairing));
    }
  }
  endTurn();
  if (translated.length === 0) throw request.expected("contents", "a list that is not empty");
  return translated;
}

/** Clients put it in place of the signature of a call that they did not get from a model of this API. */
const absentSignature = "skip_thought_signature_validator";

function modelMessage(parts: readonly Members[], pairing: CallPairing): JsonObject {
  const texts: string[] = [];
  const thoughts: string[] = [];
  const calls: JsonObject[] = [];
  pairing.begin();
  for (const part of parts) {
    part.neutral("thoughtSignature", absentSignature, "");
    const call = part.members("functionCall");
    const isThought = part.boolean("thought") === true;
    if (call === undefined) {
      const text = textOf(part);
      if (text !== "" && calls.length > 0)
        throw untranslatable(part.path, "expected calls of functions after all else");
      (isThought ? thoughts : texts).push(text);
    } else {
      part.end();
      calls.push(toolCall(call, pairing));
    }
  }
  const text = texts.join("");
  const thought = thoughts.join("");
  return {
    role: "assistant",
    content: text === "" && calls.length > 0 ? null : text,
    ...(thought === "" ? {} : { reasoning_content: thought }),
    ...(calls.length === 0 ? {} : { tool_calls: calls }),
  };
}

function toolCall(call: Members, pairing: CallPairing): JsonObject {
  const name = call.requiredString("name");
  const input = call.object("args") ?? {};
  const id = pairing.open(call.string("id"), name, call);
  call.end();
  return { id, type: "function", function: { name, arguments: JSON.stringify(input) } };
}

function userMessages(parts: readonly Members[], pairing: CallPairing): readonly JsonObject[] {
  const results: JsonObject[] = [];
  const others: JsonObject[] = [];
  for (const part of parts) {
    part.neutral("thought", false);
    const result = part.members("functionResponse");
    if (result === undefined) others.push(userPart(part));
    else if (others.length > 0) throw untranslatable(part.path, "expected results of functions before all else");
    else {
      part.end();
      results.push(toolMessage(result, pairing));
    }
  }
  if (others.length === 0) return results;
  const [first] = others;
  const content = others.length === 1 && first?.type === "text" ? (first.text as string) : others;
  return [...results, { role: "user", content }];
}

/** The result of a function is an object, which the chat API writes as text; `output` alone is the whole of it. */
function toolMessage(result: Members, pairing: CallPairing): JsonObject {
  const name = result.requiredString("name");
  const response = result.object("response") ?? {};
  const id = pairing.close(result.string("id"), name, result);
  result.neutral("willContinue", false);
  result.neutral("parts");
  result.end();
  const { output, ...others } = response;
  const isText = typeof output === "string" && Object.keys(others).length === 0;
  return { role: "tool", tool_call_id: id, content: isText ? output : JSON.stringify(response) };
}

function userPart(part: Members): JsonObject {
  const image = part.members("inlineData");
  if (image === undefined) return textPart(textOf(part));
  part.end();
  const type = image.requiredString("mimeType");
  const data = image.requiredString("data");
  image.end();
  if (!imageType.test(type)) throw untranslatable(image.at("mimeType"), `\`${type.slice(0, 64)}\``);
  return { type: "image_url", image_url: { url: `data:${type};base64,${data}` } };
}

const imageType = /^image\/[a-z0-9.+-]{1,64}$/i;

function textOf(part: Members): string {
  const text = part.string("text");
  part.end();
  if (text === undefined) throw part.expected("text", "a string");
  return text;
}

/** Members of `generationConfig` that the chat API has under another name. */
const settings = [
  ["temperature", "temperature"],
  ["topP", "top_p"],
  ["maxOutputTokens", "max_completion_tokens"],
  ["seed", "seed"],
  ["presencePenalty", "presence_penalty"],
  ["frequencyPenalty", "frequency_penalty"],
] as const;

function generation(config: Members): JsonObject {
  const given = settings.flatMap(([name, chatName]): readonly (readonly [string, Json])[] => {
    const value = config.number(name);
    return value === undefined ? [] : [[chatName, value]];
  });
  const stop = config.list("stopSequences") ?? [];
  config.neutral("candidateCount", 1);
  if (config.list("responseModalities")?.some((modality) => modality !== "TEXT") === true) {
    throw untranslatable(config.at("responseModalities"), "expected `TEXT` alone");
  }
  config.neutral("responseLogprobs", false);
  for (const name of hints) config.take(name);
  const format = responseFormat(config);
  config.end();
  return {
    ...Object.fromEntries(given),
    ...(stop.length === 0 ? {} : { stop }),
    ...(format === undefined ? {} : { response_format: format }),
  };
}

function responseFormat(config: Members): JsonObject | undefined {
  const type = config.string("responseMimeType") ?? "text/plain";
  const plain = config.object("responseSchema");
  const schema = config.object("responseJsonSchema") ?? (plain === undefined ? undefined : jsonSchema(plain));
  if (type === "application/json") {
    return schema === undefined
      ? { type: "json_object" }
      : { type: "json_schema", json_schema: { name: "response", schema } };
  }
  if (type !== "text/plain") throw untranslatable(config.at("responseMimeType"), `\`${type.slice(0, 64)}\``);
  if (schema !== undefined) throw config.expected("responseMimeType", "`application/json` where there is a schema");
  return undefined;
}

function tools(request: Members): JsonObject {
  const definitions = request.items("tools").flatMap((tool) => {
    const declared = tool.items("functionDeclarations").map(toolDefinition);
    tool.end();
    return declared;
  });
  const choice = toolChoice(
    request,
    definitions.map(({ name }) => name),
  );
  if (definitions.length === 0) return {};
  return {
    tools: definitions.map((definition) => ({ type: "function", function: definition })),
    ...(choice === undefined ? {} : { tool_choice: choice }),
  };
}

function toolDefinition(declared: Members): JsonObject & { readonly name: string } {
  const name = declared.requiredString("name");
  const description = declared.string("description");
  const plain = declared.object("parameters");
  const schema = declared.object("parametersJsonSchema") ?? (plain === undefined ? undefined : jsonSchema(plain));
  declared.neutral("behavior", "UNSPECIFIED", "BLOCKING");
  declared.end();
  return {
    name,
    ...(description === undefined ? {} : { description }),
    ...(schema === undefined ? {} : { parameters: schema }),
  };
}

const modes: ReadonlyMap<string, string> = new Map([
  ["MODE_UNSPECIFIED", "auto"],
  ["AUTO", "auto"],
  ["ANY", "required"],
  ["NONE", "none"],
]);

function toolChoice(request: Members, names: readonly string[]): Json | undefined {
  const config = request.members("toolConfig");
  const calling = config?.members("functionCallingConfig");
  config?.end();
  if (calling === undefined) return undefined;
  const mode = calling.string("mode") ?? "AUTO";
  const allowed = calling.list("allowedFunctionNames") ?? [];
  calling.end();
  const choice = modes.get(mode);
  if (choice === undefined) throw untranslatable(calling.at("mode"), `\`${mode.slice(0, 64)}\``);
  if (choice === "required" && names.length === 0) throw untranslatable(calling.at("mode"), "expected `tools`");
  if (allowed.length === 0) return choice;
  const [name] = allowed;
  if (choice === "required" && allowed.length === 1 && typeof name === "string") {
    return { type: "function", function: { name } };
  }
  if (choice === "required" && names.every((each) => allowed.includes(each))) return choice;
  throw untranslatable(calling.at("allowedFunctionNames"), "expected one name with mode `ANY`, or all");
}
