import { isJsonObject, type Json, type JsonObject } from "../../../action/json.ts";

const statuses: ReadonlyMap<number, string> = new Map([
  [400, "INVALID_ARGUMENT"],
  [401, "UNAUTHENTICATED"],
  [403, "PERMISSION_DENIED"],
  [404, "NOT_FOUND"],
  [409, "ABORTED"],
  [429, "RESOURCE_EXHAUSTED"],
  [499, "CANCELLED"],
  [500, "INTERNAL"],
  [501, "UNIMPLEMENTED"],
  [504, "DEADLINE_EXCEEDED"],
]);

/** Writes an error in the envelope of the Gemini API, with the documented name of its HTTP status. */
export function geminiError(status: number, message: string, details: readonly JsonObject[] = []): JsonObject {
  const name = statuses.get(status) ?? (status < 500 ? "INVALID_ARGUMENT" : "UNAVAILABLE");
  return { error: { code: status, message, status: name, ...(details.length === 0 ? {} : { details }) } };
}

function providerInfo(requestId: string): JsonObject {
  const metadata = { provider_request_id: requestId };
  return {
    "@type": "type.googleapis.com/google.rpc.ErrorInfo",
    reason: "PROVIDER_ERROR",
    domain: "provider",
    metadata,
  };
}

/** Translates a provider's error, in the form of the chat API. */
export function toGeminiError(status: number, body: Json): JsonObject {
  const error = isJsonObject(body) && isJsonObject(body.error) ? body.error : {};
  const { message, provider_request_id: id } = error;
  const text = typeof message === "string" ? message : `the provider answered with status ${status}`;
  const details = typeof id === "string" ? [providerInfo(id)] : [];
  return geminiError(status, text, details);
}
