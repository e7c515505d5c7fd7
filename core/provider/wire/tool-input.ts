import { GatewayError } from "../../kernel/error.ts";
import { isJsonObject, type JsonObject } from "../../kernel/json.ts";
import { type JsonBounds, parseStrictText } from "../../kernel/strict-json.ts";
import { type Members, untranslatable } from "./member.ts";

/** The arguments of a tool call: exact, for a number that was rounded would call the tool with another one. */
const argumentBounds: JsonBounds = { depth: 64, nodes: 100_000, stringLength: 4 * 1024 * 1024, reader: "exact" };

/**
 * The arguments of a tool call, which the chat API writes as a text of JSON, as the object that they are in the other.
 * Models leave the text empty where there are none. What an object of doubles cannot hold is MODEL_UNTRANSLATABLE.
 */
export function parseArguments(named: Members): JsonObject {
  const text = named.string("arguments") ?? "";
  if (text.trim() === "") return {};
  const value = parseExact(text, named.at("arguments"));
  if (!isJsonObject(value)) throw named.expected("arguments", "the text of a JSON object");
  return value;
}

function parseExact(text: string, path: string): unknown {
  try {
    return parseStrictText(text, argumentBounds);
  } catch (cause) {
    throw untranslatable(path, GatewayError.from(cause).detail);
  }
}
