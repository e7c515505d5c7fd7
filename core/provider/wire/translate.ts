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
 * `hints` are dropped first, and `onDropped` is called with the name of each. Throws MODEL_UNTRANSLATABLE for anything else
 * without an equivalent.
 */
export function translateRequest(
  from: ModelApi,
  to: ModelApi,
  body: JsonObject,
  hints: ReadonlySet<string> = none,
  onDropped: HintSink = ignore,
): JsonObject {
  if (from === to) return body;
  const request = dropHints(from, body, hints, onDropped);
  return to === "messages" ? toMessagesRequest(request) : toChatRequest(request);
}

/** Receives the name of a hint that was dropped. */
export type HintSink = (hint: string) => void;

const none: ReadonlySet<string> = new Set();
const ignore: HintSink = () => undefined;

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

/** Hints that stand in messages, their blocks, the system prompt and the tools too. A block may have others as its content. */
const itemHints: ReadonlySet<string> = new Set(["cache_control", "eager_input_streaming", "is_error"]);

/**
 * Removes hints from a request: at its top, and some in its messages and their blocks, in its system prompt and its tools.
 * The arguments and results of tools are unchanged, and so is `metadata.user_id` of the messages API, which others have too.
 */
export function dropHints(
  from: ModelApi,
  body: JsonObject,
  hints: ReadonlySet<string>,
  onDropped: HintSink = ignore,
): JsonObject {
  if (hints.size === 0) return body;
  const inItem = new Set([...itemHints].filter((hint) => hints.has(hint)));
  const strip = (value: JsonObject): JsonObject => without(value, inItem, onDropped);
  const inItems = (value: Json, change: (item: JsonObject) => JsonObject): Json =>
    Array.isArray(value) ? value.map((item: Json) => (isJsonObject(item) ? change(item) : item)) : value;
  const block = (value: JsonObject): JsonObject =>
    inMember(strip(value), "content", (content) => inItems(content, strip));
  const message = (value: JsonObject): JsonObject =>
    inMember(strip(value), "content", (content) => inItems(content, block));
  return ["system", "tools"].reduce(
    (left, name) => inMember(left, name, (value) => inItems(value, strip)),
    inMember(stripTop(from, body, hints, onDropped), "messages", (value) => inItems(value, message)),
  );
}

/** Removes the hints at the top of a request, and those in its members, such as `output_config.effort`. */
function stripTop(from: ModelApi, body: JsonObject, hints: ReadonlySet<string>, onDropped: HintSink): JsonObject {
  const labelled = hints.has("metadata") ? stripMetadata(from, body, onDropped) : body;
  const atTop = new Set([...hints].filter((hint) => hint !== "metadata"));
  const inMembers = [...hints].filter((hint) => hint.includes("."));
  return inMembers.reduce(
    (left, hint) => {
      const [name, member] = hint.split(".", 2) as [string, string];
      const strip = (value: Json): Json =>
        isJsonObject(value) ? without(value, new Set([member]), () => onDropped(hint)) : value;
      return inMember(left, name, strip);
    },
    without(labelled, atTop, onDropped),
  );
}

/** Removes the labels of a request, but not the user whom the messages API names among them. */
function stripMetadata(from: ModelApi, body: JsonObject, onDropped: HintSink): JsonObject {
  const { metadata } = body;
  const user = from === "messages" && isJsonObject(metadata) ? metadata.user_id : undefined;
  if (user === undefined) return without(body, new Set(["metadata"]), onDropped);
  if (Object.keys(metadata as JsonObject).length > 1) onDropped("metadata");
  return { ...body, metadata: { user_id: user } };
}

/** Returns the value without those of its members that are named. */
function without(value: JsonObject, names: ReadonlySet<string>, onDropped: HintSink): JsonObject {
  const dropped = Object.keys(value).filter((name) => names.has(name));
  if (dropped.length === 0) return value;
  for (const name of dropped) onDropped(name);
  return Object.fromEntries(Object.entries(value).filter(([name]) => !names.has(name)));
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
