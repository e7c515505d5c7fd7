import { isJsonObject, type Json, type JsonObject } from "../../action/json.ts";
import type { ModelApi } from "../../action/model-api.ts";

/** A provider's words about an error, in UTF-16 code units: an answer to a person, not a document. */
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

/** The documented type of an error of the messages API, by its status. */
function typeOf(status: number): string {
  return messagesTypes.get(status) ?? (status < 500 ? "invalid_request_error" : "api_error");
}

/**
 * A provider's error body as the client's API writes errors. `from` is the provider's API, but it is not believed:
 * an error of any other shape, from a proxy or a load balancer, becomes one that says no more than the status.
 */
export function translateError(from: ModelApi, to: ModelApi, status: number, body: Json): JsonObject {
  const told = isJsonObject(body) && isJsonObject(body.error) ? body.error : {};
  const message = textOf(told.message) ?? `the provider answered with status ${status}`;
  if (to === "messages") {
    const type = from === "messages" ? textOf(told.type) : undefined;
    return { type: "error", error: { type: type ?? typeOf(status), message }, request_id: null };
  }
  const own = from === "chat" ? told : {};
  const type = textOf(from === "chat" ? own.type : told.type) ?? typeOf(status);
  return { error: { message, type, param: textOf(own.param) ?? null, code: codeOf(own.code) } };
}

function textOf(value: Json | undefined): string | undefined {
  return typeof value === "string" && value !== "" ? value.slice(0, maxMessage) : undefined;
}

function codeOf(value: Json | undefined): Json {
  return typeof value === "number" ? value : (textOf(value) ?? null);
}
