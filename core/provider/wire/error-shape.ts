import { isJsonObject, type Json, type JsonObject } from "../../action/json.ts";
import type { ModelApi } from "../../action/model-api.ts";

/** Maximum length of a provider's error message, in UTF-16 code units. */
const maxMessage = 2_000;

const messagesTypes: ReadonlyMap<number, string> = new Map([
  [400, "invalid_request_error"],
  [401, "authentication_error"],
  [402, "billing_error"],
  [403, "permission_error"],
  [404, "not_found_error"],
  [413, "request_too_large"],
  [429, "rate_limit_error"],
  [504, "timeout_error"],
  [529, "overloaded_error"],
]);

/** Returns the documented error type of the messages API for a status. */
function typeOf(status: number): string {
  return messagesTypes.get(status) ?? (status < 500 ? "invalid_request_error" : "api_error");
}

/**
 * Translates a provider's error body to the client's API. `from` is the provider's API, but other shapes are expected,
 * from a proxy or a load balancer: they become an error that contains only the status.
 */
export function translateError(from: ModelApi, to: ModelApi, status: number, body: Json): JsonObject {
  const error = isJsonObject(body) && isJsonObject(body.error) ? body.error : {};
  const message = textOf(error.message) ?? `the provider answered with status ${status}`;
  if (to === "messages") {
    const type = from === "messages" ? textOf(error.type) : undefined;
    return { type: "error", error: { type: type ?? typeOf(status), message }, request_id: null };
  }
  const chatError = from === "chat" ? error : {};
  const type = textOf(from === "chat" ? chatError.type : error.type) ?? typeOf(status);
  return { error: { message, type, param: textOf(chatError.param) ?? null, code: codeOf(chatError.code) } };
}

function textOf(value: Json | undefined): string | undefined {
  return typeof value === "string" && value !== "" ? value.slice(0, maxMessage) : undefined;
}

function codeOf(value: Json | undefined): Json {
  return typeof value === "number" ? value : (textOf(value) ?? null);
}
