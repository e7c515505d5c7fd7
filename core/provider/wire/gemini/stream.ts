import { GatewayError } from "../../../action/error.ts";
import { isGiven, type JsonObject } from "../../../action/json.ts";
import type { TokenUsage } from "../../../action/model-api.ts";
import { readDelta, readFinish, readToolCall } from "../chat-answer.ts";
import { doneData, eventObject, type WireEvent } from "../event-reader.ts";
import { Members } from "../member.ts";
import { toolUse } from "../to-messages/response.ts";
import { readUsage } from "../usage.ts";
import { toGeminiError } from "./error.ts";
import { callPart, finishMembers, partsOrEmpty, thoughtPart, usageMetadata } from "./response.ts";

interface Call {
  readonly id: string;
  readonly name: string;
  arguments: string;
}

/**
 * Returns a function that translates the events of a chat stream, in their order, to the responses of a Gemini stream, by the
 * rules for a whole response. Calls of functions come whole in that API, so they follow in its last response. The function
 * throws PROVIDER_INVALID and MODEL_UNTRANSLATABLE, and must not be called after that.
 */
export function toGeminiStream(showsThoughts: boolean): (event: WireEvent) => readonly JsonObject[] {
  const stream = new ToGeminiStream(showsThoughts);
  return (event) => stream.push(event);
}

class ToGeminiStream {
  readonly #showsThoughts: boolean;
  readonly #calls = new Map<number, Call>();
  #head: JsonObject | undefined;
  #finish: string | undefined;
  #refusal: string | undefined;
  #usage: TokenUsage | undefined;
  #hasFailed = false;

  constructor(showsThoughts: boolean) {
    this.#showsThoughts = showsThoughts;
  }

  push(event: WireEvent): readonly JsonObject[] {
    if (event.keepAlive === true) return [];
    if (event.data === doneData) return this.#hasFailed ? [] : [this.#end()];
    const chunk = eventObject(event);
    if (isGiven(chunk.error)) {
      this.#hasFailed = true;
      return [toGeminiError(500, chunk)];
    }
    this.#usage = readUsage("chat", chunk) ?? this.#usage;
    const members = new Members(chunk, "", "PROVIDER_INVALID");
    this.#head ??= { modelVersion: members.requiredString("model"), responseId: members.requiredString("id") };
    const parts = members.items("choices").flatMap((choice) => this.#choice(choice));
    return parts.length === 0 ? [] : [this.#response(parts, {})];
  }

  #choice(choice: Members): readonly JsonObject[] {
    this.#finish = readFinish(choice) ?? this.#finish;
    const { thinking, text, refusal, calls } = readDelta(choice.members("delta"));
    if (refusal !== undefined) this.#refusal = (this.#refusal ?? "") + refusal;
    for (const [place, call] of calls.entries()) this.#call(call, place);
    return [
      ...(thinking === "" || !this.#showsThoughts ? [] : [thoughtPart(thinking)]),
      ...(text === "" ? [] : [{ text }]),
    ];
  }

  /** Collects the entry of a delta's `tool_calls` that stands at `place`. */
  #call(entry: Members, place: number): void {
    const { index, text, begun } = readToolCall(entry, place, this.#calls);
    if (begun === undefined) (this.#calls.get(index) as Call).arguments += text;
    else this.#calls.set(index, { ...begun, arguments: text });
  }

  /** The last response: the calls, the reason of the end, and the usage, which the chat API sends behind it. */
  #end(): JsonObject {
    if (this.#finish === undefined || this.#head === undefined) {
      throw new GatewayError("PROVIDER_INVALID", "expected a `finish_reason` before the end");
    }
    const calls = [...this.#calls.values()].map(({ id, ...named }) => {
      const call = new Members({ id, function: named }, "choices[0].delta.tool_calls", "PROVIDER_INVALID");
      return callPart(toolUse(call));
    });
    return this.#response(partsOrEmpty(calls), finishMembers(this.#finish, this.#refusal));
  }

  #response(parts: readonly JsonObject[], finish: JsonObject): JsonObject {
    const isLast = Object.keys(finish).length > 0;
    return {
      candidates: [{ content: { role: "model", parts }, ...finish, index: 0 }],
      ...(isLast ? usageMetadata(this.#usage) : {}),
      ...this.#head,
    };
  }
}
