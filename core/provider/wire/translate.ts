import { GatewayError } from "../../action/error.ts";
import { isJsonObject, type Json, type JsonObject } from "../../action/json.ts";
import type { ModelApi } from "../../action/model-api.ts";
import type { ResponseOptions } from "./content.ts";
import type { WireEvent } from "./event-reader.ts";
import { toChatRequest } from "./to-chat/request.ts";
import { toChatResponse } from "./to-chat/response.ts";
import { ToChatStream } from "./to-chat/stream.ts";
import { toMessagesRequest } from "./to-messages/request.ts";
import { toMessagesResponse } from "./to-messages/response.ts";
import { ToMessagesStream } from "./to-messages/stream.ts";

/**
 * Translates a client's request to its provider's API. Where the APIs are the same, the request is unchanged; otherwise
 * `hints` are dropped first. Throws MODEL_UNTRANSLATABLE for anything else without an equivalent.
 */
export function translateRequest(
  from: ModelApi,
  to: ModelApi,
  body: JsonObject,
  hints: ReadonlySet<string> = none,
): JsonObject {
  if (from === to) return body;
  const request = dropHints(body, hints);
  return to === "messages" ? toMessagesRequest(request) : toChatRequest(request);
}

const none: ReadonlySet<string> = new Set();

/**
 * Translates a provider's response to its client's API. Where the APIs are the same, the response is unchanged. Throws
 * PROVIDER_INVALID for an invalid response, MODEL_UNTRANSLATABLE for one that the client's API cannot express.
 */
export function translateResponse(
  from: ModelApi,
  to: ModelApi,
  body: JsonObject,
  options: ResponseOptions = {},
): JsonObject {
  if (from === to) return body;
  return to === "messages" ? toMessagesResponse(body) : toChatResponse(body, options);
}

/**
 * Removes hints from a request: at its top, in its messages and their blocks, in its system prompt and its tools. The
 * arguments and results of tools are unchanged.
 */
export function dropHints(body: JsonObject, hints: ReadonlySet<string>): JsonObject {
  if (hints.size === 0) return body;
  const without = ([name]: readonly [string, Json]): boolean => !hints.has(name);
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
 * Translates the events of a provider's stream to its client's API; where the APIs are the same, they are unchanged.
 * Throws PROVIDER_INVALID for a stream that its own API does not allow, MODEL_UNTRANSLATABLE for content that the client's
 * API cannot express; it must not be used after that.
 */
export class StreamTranslator {
  readonly #stream: ToChatStream | ToMessagesStream | undefined;

  constructor(from: ModelApi, to: ModelApi, options: ResponseOptions = {}) {
    if (from !== to) this.#stream = to === "messages" ? new ToMessagesStream() : new ToChatStream(options);
  }

  push(event: WireEvent): readonly WireEvent[] {
    if (this.#stream === undefined) return [event];
    if (this.#stream.hasEnded && event.keepAlive !== true) {
      throw new GatewayError("PROVIDER_INVALID", "expected nothing after the end of the stream");
    }
    return this.#stream.hasEnded ? [] : this.#stream.push(event);
  }
}
