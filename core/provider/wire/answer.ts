import { GatewayError } from "../../kernel/error.ts";
import { isJsonObject, type Json, type JsonObject } from "../../kernel/json.ts";
import { type JsonBounds, parseStrictJson } from "../../kernel/strict-json.ts";

/** Read as any client would, but with one meaning: a duplicate key is refused, a number is the nearest double. */
const bounds: JsonBounds = { depth: 64, nodes: 200_000, stringLength: 8 * 1024 * 1024, reader: "tolerant" };

/** The object that a provider answered with, from all of its bytes; PROVIDER_INVALID for anything else. */
export function readAnswer(bytes: Uint8Array): JsonObject {
  const value = parse(bytes);
  if (!isJsonObject(value)) throw new GatewayError("PROVIDER_INVALID", "expected a JSON object");
  return value;
}

function parse(bytes: Uint8Array): Json {
  try {
    return parseStrictJson(bytes, bounds);
  } catch (cause) {
    throw new GatewayError("PROVIDER_INVALID", GatewayError.from(cause).publicMessage, { cause });
  }
}
