import { GatewayError } from "../../action/error.ts";
import { isJsonObject, type Json, type JsonObject } from "../../action/json.ts";
import type { ModelApi } from "../../action/model-api.ts";
import type { ResponseOptions } from "./content.ts";
import type { WireEvent } from "./event-reader.ts";
import { chatToResponsesAnswer, responsesToChatAnswer } from "./responses/answer.ts";
import { chatToResponsesRequest } from "./responses/request-from-chat.ts";
import { responsesToChatRequest } from "./responses/request-to-chat.ts";
import { ChatToResponsesStream } from "./responses/stream-from-chat.ts";
import { ResponsesToChatStream } from "./responses/stream-to-chat.ts";
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
  const chat = from === "chat" ? body : toChat[from](dropHints(from, body, hintsOf(from, hints), onDropped));
  if (to === "chat") return chat;
  const left = dropHints("chat", chat, hintsOf(to, hints), onDropped);
  return from === "chat" ? fromChat[to](left) : inNamesOf(from, () => fromChat[to](left));
}

/** Hints that the chat and the responses API both have, so that none is dropped between them; to keep an answer is no hint there. */
const carried: ReadonlySet<string> = new Set([
  "metadata",
  "prompt_cache_key",
  "prompt_cache_retention",
  "reasoning_effort",
  "safety_identifier",
  "service_tier",
  "store",
  "verbosity",
]);

/** The hints that have no equivalent in an API, seen from the chat API. */
function hintsOf(api: ModelApi, hints: ReadonlySet<string>): ReadonlySet<string> {
  return api === "responses" ? new Set([...hints].filter((hint) => !carried.has(hint))) : hints;
}

const same = (request: JsonObject): JsonObject => request;
const toChat: Readonly<Record<ModelApi, (request: JsonObject) => JsonObject>> = {
  chat: same,
  messages: toChatRequest,
  responses: responsesToChatRequest,
};
const fromChat: Readonly<Record<ModelApi, (request: JsonObject) => JsonObject>> = {
  chat: same,
  messages: toMessagesRequest,
  responses: chatToResponsesRequest,
};

/** Members that have another name in a chat request than in the client's own, by the client's API. */
const ownNames: Readonly<Record<ModelApi, Readonly<Record<string, string>>>> = {
  chat: {},
  messages: { max_completion_tokens: "max_tokens", stop: "stop_sequences" },
  responses: {
    messages: "input",
    max_completion_tokens: "max_output_tokens",
    reasoning_effort: "reasoning.effort",
    response_format: "text.format",
    verbosity: "text.verbosity",
  },
};

/** Runs the second step of a translation; what it refuses is named as the client wrote it. */
function inNamesOf(from: ModelApi, translate: () => JsonObject): JsonObject {
  try {
    return translate();
  } catch (cause) {
    const { code, detail, data } = GatewayError.from(cause);
    const param = typeof data?.param === "string" ? data.param : "";
    const own = ownNames[from][/^\w*/.exec(param)?.[0] as string];
    if (own === undefined) throw cause;
    throw new GatewayError(code, detail?.replace(`\`${param}\``, `\`${own}\``), {
      data: { ...data, param: own },
      cause,
    });
  }
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
  const chat =
    from === "messages" ? toChatResponse(body, options) : from === "responses" ? responsesToChatAnswer(body) : body;
  if (to === "chat") return chat;
  return to === "messages" ? toMessagesResponse(chat) : chatToResponsesAnswer(chat, options);
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
  const top = stripTop(from, body, hints, onDropped);
  return ["messages", "input"].reduce(
    (left, name) => inMember(left, name, (value) => inItems(value, message)),
    ["system", "tools"].reduce((left, name) => inMember(left, name, (value) => inItems(value, strip)), top),
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
  /** One after the other: what is neither from nor to the chat API is translated by way of it. */
  readonly #steps: readonly StreamStage[];

  constructor(from: ModelApi, to: ModelApi, options: ResponseOptions = {}) {
    this.#steps = from === to ? [] : [...stagesToChat(from, to, options), ...stagesFromChat(to, options)];
  }

  push(event: WireEvent): readonly WireEvent[] {
    const [first] = this.#steps;
    if (first?.hasEnded === true && event.keepAlive !== true) {
      throw new GatewayError("PROVIDER_INVALID", "expected nothing after the end of the stream");
    }
    return this.#steps.reduce<readonly WireEvent[]>(
      (events, step) => events.flatMap((each) => (step.hasEnded ? [] : step.push(each))),
      [event],
    );
  }
}

interface StreamStage {
  readonly hasEnded: boolean;
  push(event: WireEvent): readonly WireEvent[];
}

function stagesToChat(from: ModelApi, to: ModelApi, options: ResponseOptions): readonly StreamStage[] {
  const counted = to === "chat" ? options : { ...options, includeUsage: true };
  if (from === "messages") return [new ToChatStream(counted)];
  return from === "responses" ? [new ResponsesToChatStream(counted)] : [];
}

function stagesFromChat(to: ModelApi, options: ResponseOptions): readonly StreamStage[] {
  if (to === "messages") return [new ToMessagesStream()];
  return to === "responses" ? [new ChatToResponsesStream(options)] : [];
}
