import { GatewayError } from "../../action/error.ts";
import { isJsonObject, type Json, type JsonObject } from "../../action/json.ts";
import type { ModelApi } from "../../action/model-api.ts";
import type { AnswerOptions } from "./content.ts";
import type { WireEvent } from "./event-reader.ts";
import { toChatRequest } from "./to-chat/request.ts";
import { toChatResponse } from "./to-chat/response.ts";
import { ToChatStream } from "./to-chat/stream.ts";
import { toMessagesRequest } from "./to-messages/request.ts";
import { toMessagesResponse } from "./to-messages/response.ts";
import { ToMessagesStream } from "./to-messages/stream.ts";

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

/**
 * A request without these hints: at its top, in its messages and their blocks, in its system prompt and its tools. What
 * tools are given and what they say stays as it is.
 */
export function leaveOut(body: JsonObject, names: ReadonlySet<string>): JsonObject {
  if (names.size === 0) return body;
  const without = ([name]: readonly [string, Json]): boolean => !names.has(name);
  const strip = (value: JsonObject): JsonObject => Object.fromEntries(Object.entries(value).filter(without));
  const inItems = (value: Json, change: (item: JsonObject) => JsonObject): Json =>
    Array.isArray(value) ? value.map((item: Json) => (isJsonObject(item) ? change(item) : item)) : value;
  const block = (value: JsonObject): JsonObject =>
    inMember(strip(value), "content", (content) => inItems(content, strip));
  const message = (value: JsonObject): JsonObject =>
    inMember(strip(value), "content", (content) => inItems(content, block));
  return ["system", "tools"].reduce(
    (left, name) => inMember(left, name, (value) => inItems(value, strip)),
    inMember(strip(body), "messages", (value) => inItems(value, message)),
  );
}

function inMember(value: JsonObject, name: string, change: (member: Json) => Json): JsonObject {
  const member = value[name];
  return member === undefined ? value : { ...value, [name]: change(member) };
}

/**
 * Writes the events of a provider's stream in the API that its client speaks; where that is the same one, they are the
 * same events. Throws PROVIDER_INVALID for a stream that its own API does not allow, MODEL_UNTRANSLATABLE for what the
 * client's cannot express; it must not be fed again after that.
 */
export class StreamTranslator {
  readonly #stream: ToChatStream | ToMessagesStream | undefined;

  constructor(from: ModelApi, to: ModelApi, options: AnswerOptions = {}) {
    if (from !== to) this.#stream = to === "messages" ? new ToMessagesStream() : new ToChatStream(options);
  }

  push(event: WireEvent): readonly WireEvent[] {
    if (this.#stream === undefined) return [event];
    if (this.#stream.ended && event.keepAlive !== true) {
      throw new GatewayError("PROVIDER_INVALID", "expected nothing after the end of the stream");
    }
    return this.#stream.ended ? [] : this.#stream.push(event);
  }
}
