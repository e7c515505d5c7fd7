import { isJsonObject, type Json, type JsonObject } from "../../action/json.ts";
import type { ModelApi } from "../../action/model-api.ts";

/** Maximum length of a provider's error message, in UTF-16 code units. */
const maxMessage = 2_000;
/** Maximum length of an error whose unknown members are kept, as JSON in UTF-16 code units. */
const maxError = 16_384;

/** Ids as providers generate them. */
const idShape = /^[\w.:+/=-]{1,128}$/;

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
 * from a proxy or a load balancer: they become an error that contains only the status. Members that an API does not know
 * stay where the client speaks the provider's: some hold what the client needs to mend its request. `requestId` is the
 * provider's, by its header: its support asks for it.
 */
export function translateError(
  from: ModelApi,
  to: ModelApi,
  status: number,
  body: Json,
  requestId: Json = null,
): JsonObject {
  const error = isJsonObject(body) && isJsonObject(body.error) ? body.error : {};
  // The chat and the responses API have one form of errors.
  const others = (from === "messages") === (to === "messages") ? othersOf(error) : {};
  const message = textOf(error.message) ?? `the provider answered with status ${status}`;
  const isOwn = from === "messages" && to === "messages" && isJsonObject(body);
  const id = idMember((isOwn ? body.request_id : null) ?? requestId);
  if (to === "messages") {
    const type = from === "messages" ? textOf(error.type) : undefined;
    return { type: "error", error: { ...others, ...id, type: type ?? typeOf(status), message }, request_id: null };
  }
  const chatError = from === "messages" ? {} : error;
  const type = textOf(error.type) ?? typeOf(status);
  const [param, code] = [textOf(chatError.param) ?? null, codeOf(chatError.code)];
  return { error: { ...others, ...id, message, type, param, code } };
}

function idMember(id: Json): JsonObject {
  return typeof id === "string" && idShape.test(id) ? { provider_request_id: id } : {};
}

/** All members of an error, unless they are too much. */
function othersOf(error: JsonObject): JsonObject {
  return JSON.stringify(error).length <= maxError ? error : {};
}

function textOf(value: Json | undefined): string | undefined {
  return typeof value === "string" && value !== "" ? value.slice(0, maxMessage) : undefined;
}

function codeOf(value: Json | undefined): Json {
  return typeof value === "number" ? value : (textOf(value) ?? null);
}
