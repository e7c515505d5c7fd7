import { GatewayError } from "../../../action/error.ts";
import { isJsonObject, type JsonObject } from "../../../action/json.ts";
import { type JsonBounds, parseStrictJson } from "../../../action/strict-json.ts";
import { readOnlyChoice } from "../chat-answer.ts";
import { stopReason, textPart } from "../content.ts";
import { Members, untranslatable } from "../member.ts";
import { readUsage, writeUsage } from "../usage.ts";

/**
 * Translates a response of the chat API to one of the messages API. Its content is translated or refused; the provider's
 * own members beside it (fingerprint, tier, timings) are dropped.
 */
export function toMessagesResponse(body: JsonObject): JsonObject {
  const answer = new Members(body, "", "PROVIDER_INVALID");
  const { choice, message } = readOnlyChoice(answer);
  const refusal = message.string("refusal");
  const content = contentOf(message);
  const callsTool = content.some(({ type }) => type === "tool_use");
  const finish = choice.requiredString("finish_reason");
  choice.neutral("logprobs");
  return {
    id: answer.requiredString("id"),
    type: "message",
    role: "assistant",
    model: answer.requiredString("model"),
    content,
    stop_reason: stopReason(finish, { callsTool, refuses: refusal !== undefined }, choice.at("finish_reason")),
    stop_sequence: null,
    ...(refusal === undefined ? {} : { stop_details: refusalDetails(refusal) }),
    usage: writeUsage("messages", readUsage("chat", body)),
  };
}

/** Writes the model's explanation of a refusal. */
export function refusalDetails(words: string): JsonObject {
  return { type: "refusal", category: null, explanation: words };
}

function contentOf(message: Members): readonly JsonObject[] {
  message.string("role");
  const thinking = message.string("reasoning_content");
  const text = message.string("content");
  const calls = message.items("tool_calls").map((call) => {
    call.number("index"); // some servers include it outside of streams, too
    return toolUse(call);
  });
  message.neutral("annotations");
  message.end();
  return [
    ...(thinking === undefined || thinking === "" ? [] : [{ type: "thinking", thinking, signature: "" }]),
    ...(text === undefined || text === "" ? [] : [textPart(text)]),
    ...calls,
  ];
}

/** Translates an entry of `tool_calls`, of a request or a response, to a `tool_use` block. */
export function toolUse(call: Members): JsonObject {
  const id = call.requiredString("id");
  if ((call.string("type") ?? "function") !== "function") throw untranslatable(call.at("type"), "expected `function`");
  const named = call.members("function");
  if (named === undefined) throw call.expected("function", "an object");
  call.end();
  const name = named.requiredString("name");
  const input = parseArguments(named);
  named.end();
  return { type: "tool_use", id, name, input };
}

/** Arguments are parsed exactly: a rounded number would call the tool with another value. */
const argumentBounds: JsonBounds = { depth: 64, nodes: 100_000, stringLength: 4 * 1024 * 1024, reader: "exact" };

/**
 * Parses the arguments of a tool call, a text of JSON in the chat API, an object in the messages API. Models leave the
 * text empty where there are none. Throws MODEL_UNTRANSLATABLE for a number that a double cannot hold.
 */
function parseArguments(named: Members): JsonObject {
  const text = named.string("arguments") ?? "";
  if (text.trim() === "") return {};
  const value = parseExact(text, named.at("arguments"));
  if (!isJsonObject(value)) throw named.expected("arguments", "the text of a JSON object");
  return value;
}

function parseExact(text: string, path: string): unknown {
  try {
    return parseStrictJson(text, argumentBounds);
  } catch (cause) {
    throw untranslatable(path, GatewayError.from(cause).detail);
  }
}
