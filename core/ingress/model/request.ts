import { GatewayError } from "../../kernel/error.ts";
import { isJsonObject, type Json, type JsonObject } from "../../kernel/json.ts";
import type { ModelApi } from "../../kernel/model-api.ts";

/** A model request, of which only what the gateway acts on is looked at; the rest passes untouched. */
export interface ModelRequest {
  readonly api: ModelApi;
  readonly body: JsonObject;
  readonly model: string;
  readonly stream: boolean;
}

const longestModel = 256;

/** Reads a request of an API. Throws INVALID_REQUEST, and what `checkTools` throws. */
export function readModelRequest(api: ModelApi, body: Json): ModelRequest {
  if (!isJsonObject(body)) throw new GatewayError("INVALID_REQUEST", "expected an object");
  const { model, messages, stream } = body;
  if (typeof model !== "string" || model === "" || model.length > longestModel) {
    throw new GatewayError("INVALID_REQUEST", `expected \`model\` to be a text of 1 to ${longestModel} characters`);
  }
  if (!Array.isArray(messages) || messages.length === 0) {
    throw new GatewayError("INVALID_REQUEST", "expected `messages` to be a list that is not empty");
  }
  if (stream !== undefined && stream !== null && typeof stream !== "boolean") {
    throw new GatewayError("INVALID_REQUEST", "expected `stream` to be true or false");
  }
  return { api, body, model, stream: stream === true };
}
