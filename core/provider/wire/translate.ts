import type { JsonObject } from "../../kernel/json.ts";
import type { ModelApi } from "../../kernel/model-api.ts";
import type { AnswerOptions } from "./answer-option.ts";
import { leaveOut } from "./leave-out.ts";
import { toChatRequest } from "./to-chat/request.ts";
import { toChatResponse } from "./to-chat/response.ts";
import { toMessagesRequest } from "./to-messages/request.ts";
import { toMessagesResponse } from "./to-messages/response.ts";

/**
 * A client's request in the API that its provider speaks. Where that is the same one, it is the same request; else it is
 * without those `hints` that may be left behind. Throws MODEL_UNTRANSLATABLE for whatever else has no equivalent.
 */
export function translateRequest(
  from: ModelApi,
  to: ModelApi,
  body: JsonObject,
  leftOut: ReadonlySet<string> = none,
): JsonObject {
  if (from === to) return body;
  const said = leaveOut(body, leftOut);
  return to === "messages" ? toMessagesRequest(said) : toChatRequest(said);
}

const none: ReadonlySet<string> = new Set();

/**
 * A provider's answer in the API that its client speaks. Where that is the same one, it is the same answer. Throws
 * PROVIDER_INVALID for what is no answer, MODEL_UNTRANSLATABLE for one that the client's API cannot express.
 */
export function translateResponse(
  from: ModelApi,
  to: ModelApi,
  body: JsonObject,
  options: AnswerOptions = {},
): JsonObject {
  if (from === to) return body;
  return to === "messages" ? toMessagesResponse(body) : toChatResponse(body, options);
}
